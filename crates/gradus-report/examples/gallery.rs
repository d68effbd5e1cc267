//! Writes a page with every chart, edge cases included.
//!
//! ```text
//! cargo run -p gradus-report --example gallery -- gallery.html
//! ```
//!
//! A second argument names a folder that receives each standalone drawing as an `.svg` file.

use std::path::Path;

use gradus_report::{
    Align, Bars, Beside, Boxes, Chart, Confusions, Contour, Curves, Density, Forest, Heat, Line,
    Marks, Page, PageTable, Reliability, ReliabilityBin, Scatter, Stack, TableColumn,
    coefficient_path, fixed, predicted_vs_true, qq_plot, residual_plot,
};

/// A small deterministic stream of uniform numbers (splitmix64): the gallery never changes by itself.
struct Stream(u64);

impl Stream {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Roughly normal: the sum of twelve uniforms.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

fn curve(from: f64, to: f64, rate: f64, n: usize) -> Vec<(f64, f64)> {
    (1..=n).map(|i| (i as f64, to + (from - to) * (-(i as f64) * rate).exp())).collect()
}

/// Whether each of `n` rows is yes, and how likely a model of this skill says it is.
fn classified(random: &mut Stream, n: usize, share: f64, skill: f64) -> Vec<(bool, f64)> {
    let one = |random: &mut Stream| {
        let yes = random.uniform() < share;
        let log_odds = skill * (random.normal() + if yes { skill } else { 0.0 } - skill / 2.0);
        (yes, 1.0 / (1.0 + (-log_odds - (share / (1.0 - share)).ln()).exp()))
    };
    (0..n).map(|_| one(random)).collect()
}

/// Points of the ROC curve and of precision against recall, and the areas below them.
struct Evaluated {
    roc: Vec<(f64, f64)>,
    auc: f64,
    precision: Vec<(f64, f64)>,
    average: f64,
}

fn evaluated(rows: &[(bool, f64)]) -> Evaluated {
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    let yes = rows.iter().filter(|row| row.0).count() as f64;
    let no = rows.len() as f64 - yes;
    let (mut roc, mut precision) = (vec![(0.0, 0.0)], Vec::new());
    let (mut auc, mut average, mut good, mut bad) = (0.0, 0.0, 0.0, 0.0);
    for row in rows {
        if row.0 {
            good += 1.0;
            average += good / (good + bad) / yes;
        } else {
            bad += 1.0;
            auc += good / yes / no;
        }
        roc.push((bad / no, good / yes));
        precision.push((good / yes, good / (good + bad)));
    }
    Evaluated { roc, auc, precision, average }
}

/// Ten bins of equal width, with normal intervals.
fn reliability(rows: &[(bool, f64)], sharpen: f64) -> Reliability {
    let probability = |p: f64| 1.0 / (1.0 + (sharpen * ((1.0 - p) / p).ln()).exp());
    let bins = (0..10).filter_map(|bin| {
        let inside: Vec<_> = rows
            .iter()
            .map(|row| (row.0, probability(row.1)))
            .filter(|row| (row.1 * 10.0) as usize == bin)
            .collect();
        let n = inside.len() as f64;
        let observed = inside.iter().filter(|row| row.0).count() as f64 / n;
        let error = 1.96 * (observed * (1.0 - observed) / n).sqrt();
        (n > 0.0).then(|| ReliabilityBin {
            predicted: inside.iter().map(|row| row.1).sum::<f64>() / n,
            observed,
            count: n,
            interval: Some((observed - error, observed + error)),
        })
    });
    let scores: Vec<f64> = rows.iter().map(|row| probability(row.1)).collect();
    Reliability::new(bins).scores(&scores)
}

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut random = Stream(7);

    let training = Line::new()
        .title("Error by iteration")
        .series("train", curve(1.05, 0.78, 0.13, 40))
        .series(
            "validation",
            curve(1.08, 0.87, 0.16, 40).into_iter().map(|(x, y)| (x, y + x * x * 1.2e-5)),
        )
        .reference(0.981, "user + item mean")
        .reference(1.117, "global mean")
        .marker(26.0, "best iteration: 26")
        .x_label("iteration")
        .y_label("RMSE");
    let objective = Line::new()
        .title("Duality gap")
        .series("coordinate descent", (1..=60).map(|i| (f64::from(i), 40.0 * 0.72f64.powi(i))))
        .series("proximal gradient", (1..=60).map(|i| (f64::from(i), 40.0 * 0.9f64.powi(i))))
        .log_y()
        .x_label("iteration")
        .y_label("gap (log scale)");
    let learning = Line::new()
        .title("Learning curve")
        .series("NDCG@10", [(1e3, 0.21), (5e3, 0.29), (2e4, 0.34), (5e4, 0.37), (1e5, 0.38)])
        .markers()
        .x_label("ratings used")
        .y_label("NDCG@10");
    let close =
        (0..8).fold(Line::new().title("Eight series that end close together"), |line, k| {
            let end = 0.8 + 0.002 * f64::from(k);
            line.series(format!("rank {}", 8 << k), curve(1.2 + 0.03 * f64::from(k), end, 0.1, 50))
        });
    let close = close.x_label("iteration").y_label("RMSE");
    let long = Line::new()
        .title("Long names go into a legend")
        .series("alternating least squares with implicit feedback", curve(3.0, 1.0, 0.2, 30))
        .series("stochastic gradient descent with momentum 0.9", curve(3.4, 0.8, 0.1, 30))
        .reference(2.0, "the best published result, as far as we know");

    let spiral = (0..60).map(|k| {
        let (angle, size) = (0.4 * f64::from(k), 1.5 * 0.93f64.powi(k));
        (size * angle.cos(), size * angle.sin())
    });
    let surface = Contour::new((-2.0, 2.0), (-2.0, 2.0), |x, y| x * x + 3.0 * y * y + x * y)
        .title("Level lines and paths")
        .path("a spiral", spiral)
        .path("a straight path", [(-1.8, 1.6), (-0.9, 0.8), (0.0, 0.0)])
        .path("one that leaves", [(1.0, 1.0), (1.5, 1.4), (9.0, 3.0)])
        .mark(0.0, 0.0, "minimum")
        .x_label("x")
        .y_label("y");
    let hole = Contour::new((-1.0, 1.0), (-1.0, 1.0), |x, y| {
        if x * x + y * y < 0.1 { f64::NAN } else { (5.0 * x).sin() + y }
    });
    let hole = hole.title("With a hole");

    let truth: Vec<f32> = (0..200_000)
        .map(|_| [1.0, 2.0, 3.0, 3.0, 4.0, 4.0, 4.0, 5.0, 5.0][(random.uniform() * 9.0) as usize])
        .collect();
    let predicted: Vec<f32> =
        truth.iter().map(|t| (1.5 + 0.6 * f64::from(*t) + 0.45 * random.normal()) as f32).collect();
    let ratings =
        predicted_vs_true(&predicted, &truth).title("Held-out ratings").x_label("true rating");
    let half_truth: Vec<f32> =
        (0..50_000).map(|_| (random.uniform() * 10.0).ceil() as f32 / 2.0).collect();
    let half_predicted: Vec<f32> = half_truth
        .iter()
        .map(|t| (1.2 + 0.65 * f64::from(*t) + 0.4 * random.normal()) as f32)
        .collect();
    let halves = predicted_vs_true(&half_predicted, &half_truth).title("Half stars");
    let smooth_truth: Vec<f32> =
        (0..300_000).map(|_| (20.0 + 6.0 * random.normal()) as f32).collect();
    let mut smooth: Vec<f32> = smooth_truth
        .iter()
        .map(|t| (4.0 + 0.8 * f64::from(*t) + 2.2 * random.normal()) as f32)
        .collect();
    smooth[17] = 9000.0;
    let dense = predicted_vs_true(&smooth, &smooth_truth).title("House prices, thousands");
    let few = predicted_vs_true(&smooth[1000..1400], &smooth_truth[1000..1400]).title("400 pairs");
    let cloud = Scatter::new((0..300).map(|_| (random.normal() * 1e5, random.normal() * 1e-6)));
    let cloud = cloud.title("Two scales").x_label("income").y_label("weight");
    let plain = Density::new(&smooth_truth, &smooth).title("Without a diagonal");

    let compared = [("als", 1.2, 0.912), ("bayes", 31.0, 0.897), ("bias", 0.01, 0.943)];
    let board = Forest::new(compared.map(|(name, _, y)| (name, y, y - 0.012, y + 0.012)))
        .title("RMSE on the test part")
        .highlight(["bayes"])
        .decimals(3);
    let cost = Marks::new(compared.map(|(name, x, y)| (name, x, y, (y - 0.012, y + 0.012))))
        .title("Time against quality")
        .x_label("seconds")
        .y_label("RMSE")
        .log_x()
        .highlight(["bayes"]);

    let models = Bars::new([
        ("global mean", 1.117),
        ("item mean", 1.024),
        ("user + item mean", 0.981),
        ("nearest neighbours", 0.934),
        ("ALS, 32 factors", 0.862),
    ])
    .title("RMSE on held-out ratings (lower is better)")
    .decimals(3)
    .highlight("ALS, 32 factors");
    let why = Bars::new([
        ("You rated Alien 5", 0.42),
        ("You rated Blade Runner 4.5", 0.31),
        ("Liked by similar readers </script><b>", 0.12),
        ("You rated Titanic 2", -0.18),
        ("Popularity", -0.05),
    ])
    .title("Why this recommendation");
    let names = ["0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4", "4.5", "5"];
    let counts =
        [1370.0, 3326.0, 1687.0, 7943.0, 4932.0, 20064.0, 10538.0, 28750.0, 7723.0, 14856.0];
    let histogram = Bars::new(names.into_iter().zip(counts)).vertical().title("Ratings given");
    let histogram = histogram.x_label("stars").y_label("ratings");
    let spectrum = Bars::new((1..=60).map(|i| (i.to_string(), 100.0 / f64::from(i).powf(0.8))));
    let spectrum =
        spectrum.vertical().title("Singular values").reference(12.0, "noise level").x_label("rank");

    let k = 8;
    let heat = Heat::new((0..k).map(|i| {
        let noise: Vec<f64> = (0..k).map(|_| random.uniform() * 0.15).collect();
        noise
            .iter()
            .enumerate()
            .map(|(j, e)| if i == j { 0.99 - e } else { *e })
            .collect::<Vec<_>>()
    }))
    .title("Planted against learned factors")
    .max(1.0)
    .y_label("planted (rows)")
    .x_label("learned (columns)");
    let correlations = Heat::new([[1.0, 0.62, -0.71], [0.62, 1.0, -0.2], [-0.71, -0.2, f64::NAN]])
        .rows(["price", "rooms", "distance to the centre"])
        .columns(["price", "rooms", "distance"])
        .title("Correlations");
    let big =
        Heat::new((0..24).map(|i| (0..48).map(|j| f64::from(i * j % 17)).collect::<Vec<_>>()))
            .title("A larger matrix");

    let nothing = Line::new().title("No data at all");
    let one = Line::new().title("A single point").series("only", [(3.0, 7.0)]);
    let constant =
        Line::new().title("A constant").series("flat", (0..20).map(|i| (f64::from(i), 0.25)));
    let gaps = Line::new().title("Gaps where values are missing").series(
        "loss",
        (0..60).map(|i| {
            let y = (f64::from(i) / 6.0).sin();
            (f64::from(i), if i % 17 == 5 { f64::NAN } else { y })
        }),
    );
    let huge = Line::new()
        .title("From tiny to huge")
        .series("a", [(0.0, 1e-12), (1.0, 1e3), (2.0, 1e18)])
        .log_y();
    let noisy = Line::new().title("A hundred thousand points").series(
        "loss",
        (0..100_000).map(|i| (f64::from(i), 2.0 + 0.3 * random.normal() - f64::from(i) * 1e-5)),
    );
    let zero =
        Bars::new([("a", 0.0), ("b", 0.0), ("c", f64::NAN)]).title("Zeros and a missing value");
    let boxes = Boxes::new([
        ("train", (0..400).map(|_| random.normal()).collect::<Vec<_>>()),
        ("test", (0..100).map(|_| random.normal() + 0.4).collect()),
        ("empty", Vec::new()),
        ("a single value", vec![1.5]),
    ])
    .title("Residuals by split")
    .y_label("residual");

    let strong = classified(&mut random, 4000, 0.15, 1.9);
    let weak = classified(&mut random, 4000, 0.15, 1.0);
    let (best, good) = (evaluated(&strong), evaluated(&weak));
    let roc = Curves::roc()
        .title("Receiver operating characteristic")
        .curve("logistic", best.roc.clone(), best.auc)
        .curve("naive Bayes", good.roc, good.auc);
    let alone = Curves::roc().title("One curve shows its area").curve("", best.roc, best.auc);
    let precision = Curves::precision_recall(0.15)
        .title("Precision and recall")
        .curve("logistic", best.precision, best.average)
        .curve("naive Bayes", good.precision, good.average);
    let calibrated = reliability(&strong, 1.0).title("Calibration, logistic");
    let sure = reliability(&strong, 2.2).title("Calibration of a model that is too sure");
    let confusion = Confusions::new([[3310.0, 90.0], [182.0, 418.0]])
        .classes(["ham", "spam"])
        .title("Which mails are called spam");
    let digits: Vec<Vec<f64>> = (0..10)
        .map(|i: i32| {
            let cell = |j: i32| match (i - j).abs() {
                0 => 930.0 + f64::from(i * 7 % 40),
                5 => f64::from((i * 13 + j * 5) % 37),
                _ => f64::from((i * 31 + j * 17) % 9) * f64::from((i + j) % 2),
            };
            (0..10).map(cell).collect()
        })
        .collect();
    let digits = Confusions::new(digits).title("Ten digits");
    let classes: Vec<Vec<f64>> = (0..26)
        .map(|i: i32| {
            (0..26).map(|j| if i == j { 60.0 } else { f64::from((i * j) % 7 / 5) }).collect()
        })
        .collect();
    let letters =
        Confusions::new(classes).classes(('a'..='z').map(String::from)).title("Twenty-six letters");

    let area: Vec<f64> = (0..700).map(|_| 20.0 + 180.0 * random.uniform()).collect();
    let price: Vec<f64> =
        area.iter().map(|a| 0.012 * a * a + 2.0 * a + a * 0.25 * random.normal() + 30.0).collect();
    let fitted: Vec<f64> = area.iter().map(|a| 4.4 * a - 60.0).collect();
    let left = residual_plot(&fitted, &price)
        .title("Residuals: a bend the model missed, and a funnel")
        .x_label("predicted price");
    let line: Vec<f64> = (0..200_000).map(|_| 50.0 + 12.0 * random.normal()).collect();
    let noisy_line: Vec<f64> = line.iter().map(|p| p + 3.0 * random.normal()).collect();
    let clean = residual_plot(&line, &noisy_line).title("Residuals of 200,000 rows");
    let normal: Vec<f64> = line.iter().zip(&noisy_line).map(|(p, t)| t - p).collect();
    let normal = qq_plot(&normal[..3000]).title("Residuals that are normal");
    let heavy: Vec<f64> =
        (0..3000).map(|_| random.normal() / (0.15 + random.uniform()).sqrt()).collect();
    let heavy = qq_plot(&heavy).title("Residuals with heavy tails");

    let degrees: Vec<f64> = (1..=14).map(f64::from).collect();
    let tradeoff = Stack::new(degrees.clone())
        .title("Why a polynomial of degree 6 does best")
        .layer("noise", degrees.iter().map(|_| 0.08))
        .layer("bias²", degrees.iter().map(|d| 0.55 * (-0.65 * (d - 1.0)).exp()))
        .layer("variance", degrees.iter().map(|d| 0.008 * (0.26 * d).exp()))
        .total("test error")
        .marker(6.0, "least: degree 6")
        .x_label("degree of the polynomial")
        .y_label("squared error");
    let lambdas: Vec<f64> = (0..40).map(|i| 10f64.powf(1.0 - f64::from(i) / 10.0)).collect();
    let ridge = Stack::new(lambdas.clone())
        .title("Along a penalty")
        .layer("bias² and noise", lambdas.iter().map(|l| 0.2 + 0.5 * l / (l + 0.5)))
        .layer("variance", lambdas.iter().map(|l| 0.35 / (1.0 + 25.0 * l)))
        .total("test error")
        .log_x()
        .falling_x()
        .x_label("penalty (log scale)")
        .y_label("squared error");
    let features = [
        ("dose", 1.9, 6.0),
        ("age", -1.2, 3.0),
        ("weight", 0.8, 1.2),
        ("smoker", 0.62, 0.9),
        ("height", -0.45, 0.4),
        ("sex", 0.3, 0.2),
        ("pulse", 0.12, 0.1),
        ("site", -0.1, 0.06),
        ("week", 0.08, 0.05),
        ("hour", -0.05, 0.03),
    ];
    let lasso = coefficient_path(
        &lambdas,
        features.map(|(name, full, enters): (&str, f64, f64)| {
            let shrunk = |l: &f64| full.signum() * (full.abs() * (1.0 - l / enters)).max(0.0);
            (name, lambdas.iter().map(shrunk).collect::<Vec<_>>())
        }),
    )
    .title("Coefficients of a lasso")
    .marker(0.03, "chosen by cross-validation")
    .x_label("penalty (log scale)");

    let table = PageTable::new([
        TableColumn::text("model"),
        TableColumn::number("RMSE").decimals(3).bar(),
        TableColumn::number("change").bar(),
        TableColumn::number("seconds"),
        TableColumn::text("converged").align(Align::Center),
    ])
    .caption("Models side by side")
    .row(["global mean".into(), 1.117.into(), 0.0.into(), 0.01.into(), "yes".into()])
    .row(["user + item mean".into(), 0.981.into(), (-0.136).into(), 0.08.into(), "yes".into()])
    .highlighted([
        "ALS, 32 factors".into(),
        0.862.into(),
        (-0.255).into(),
        4.7.into(),
        "yes".into(),
    ])
    .row([
        "</script><b>hostile</b>".into(),
        f64::NAN.into(),
        0.1.into(),
        1234567.0.into(),
        "no".into(),
    ]);

    let html = Page::new("Gallery of charts")
        .subtitle("Every chart of the report, with ordinary data and with awkward data.")
        .stats([
            ("RMSE", fixed(0.862, 3), "23 % below the global mean"),
            ("Ratings", "1,000,209".to_owned(), "6,040 users, 3,706 items"),
            ("Iterations", "26 of 40".to_owned(), "stopped early"),
            ("Training", "4.7 s".to_owned(), ""),
        ])
        .section("Lines", |s| {
            s.text("The validation error passes the baselines after a few iterations and is lowest at iteration 26; from there on the model fits noise.")
                .chart(&training)
                .columns(|l| l.chart(&objective), |r| r.chart(&learning))
                .chart(&close)
                .chart(&long)
        })
        .section("Predicted against true", |s| {
            s.chart(&ratings)
                .columns(|l| l.chart(&dense), |r| r.chart(&few))
                .columns(|l| l.chart(&halves), |r| r.chart(&cloud))
                .chart(&plain)
        })
        .section("Classifiers", |s| {
            s.columns(|l| l.chart(&roc), |r| r.chart(&precision))
                .columns(|l| l.chart(&calibrated), |r| r.chart(&sure))
                .columns(|l| l.chart(&confusion), |r| r.chart(&alone))
                .chart(&digits)
                .chart(&letters)
        })
        .section("Residuals", |s| {
            s.chart(&left)
                .columns(|l| l.chart(&normal), |r| r.chart(&heavy))
                .columns(|l| l.chart(&clean), |r| r.chart(&ridge))
        })
        .section("Complexity", |s| s.chart(&tradeoff).chart(&lasso))
        .section("Comparisons", |s| s.chart(&board).chart(&cost))
        .section("Bars", |s| {
            s.chart(&models)
                .columns(|l| l.chart(&why), |r| r.chart(&histogram))
                .chart(&spectrum)
        })
        .section("Heat maps", |s| {
            s.columns(|l| l.chart(&heat), |r| r.chart(&correlations)).chart(&big)
        })
        .section("Surfaces", |s| {
            s.chart(&surface)
                .columns(|l| l.chart(&hole), |r| r.chart(&surface))
                .chart(Beside::new(&hole, &objective))
        })
        .section("Tables and code", |s| {
            s.table(&table).note("Bars are relative to the largest magnitude in the column.").code(
                "gradus fit als ratings.csv -o model.gradus\ngradus recommend model.gradus --user 42 -n 10",
            )
        })
        .section("Edge cases", |s| {
            s.columns(|l| l.chart(&nothing).chart(&one), |r| r.chart(&zero).chart(&constant))
                .columns(|l| l.chart(&gaps), |r| r.chart(&huge))
                .chart(&noisy)
                .chart(&boxes)
        })
        .footer("Made by the gallery example of gradus-report.")
        .to_html();
    let path = args.next().unwrap_or_else(|| "gallery.html".to_owned());
    std::fs::write(&path, html)?;
    println!("wrote {path}");

    if let Some(folder) = args.next() {
        std::fs::create_dir_all(&folder)?;
        let charts: [(&str, &dyn Chart); 12] = [
            ("line", &training),
            ("boxes", &ratings),
            ("density", &dense),
            ("bars", &models),
            ("heat", &heat),
            ("roc", &roc),
            ("calibration", &calibrated),
            ("confusion", &confusion),
            ("residuals", &left),
            ("stack", &tradeoff),
            ("path", &lasso),
            ("contour", &surface),
        ];
        for (name, chart) in charts {
            std::fs::write(Path::new(&folder).join(format!("{name}.svg")), chart.to_svg())?;
        }
        println!("wrote {} drawings to {folder}", charts.len());
    }
    Ok(())
}
