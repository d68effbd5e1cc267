//! Whatever numbers and names come in, what goes out is well-formed, finite and repeatable.

use gradus_report::{
    Bars, Boxes, Chart, Confusions, Curves, Density, Forest, Heat, Line, Marks, Page, Pictures,
    Reliability, ReliabilityBin, Scatter, Stack, coefficient_path, escape, predicted_vs_true,
    qq_plot, residual_plot,
};
use proptest::prelude::*;

const NAME: &str = "</script><b> & \"x\" '\u{1}\u{fffe}";

/// Every chart there is, fed with the same values.
fn charts(values: &[f64]) -> Vec<Box<dyn Chart>> {
    let points = || values.iter().copied().zip(values.iter().rev().copied());
    let indexed = || values.iter().enumerate().map(|(i, &v)| (i as f64, v));
    let named = || values.iter().map(|&v| (NAME, v));
    let narrow: Vec<f32> = values.iter().map(|&v| v as f32).collect();
    let other: Vec<f32> = narrow.iter().rev().copied().collect();
    let first = values.first().copied().unwrap_or(f64::NAN);
    let line = || {
        let line = Line::new().title(NAME).x_label(NAME).y_label(NAME).series(NAME, points());
        line.series("a", indexed()).series("", []).reference(first, "b").marker(first, NAME)
    };
    let reversed: Vec<f64> = values.iter().rev().copied().collect();
    let bins = || {
        let bin = |(predicted, observed)| ReliabilityBin {
            predicted,
            observed,
            count: predicted,
            interval: Some((observed, first)),
        };
        points().map(bin)
    };
    vec![
        Box::new(line()),
        Box::new(line().log_x().falling_x().faint(NAME, points())),
        Box::new(Curves::roc().title(NAME).curve(NAME, points(), first).curve("", indexed(), 0.5)),
        Box::new(Curves::precision_recall(first).curve(NAME, points(), first)),
        Box::new(Reliability::new(bins()).title(NAME).scores(values)),
        Box::new(Reliability::new(bins())),
        Box::new(Confusions::new([values, &reversed]).classes([NAME])),
        Box::new(Confusions::new(values.iter().map(|&v| [v])).title(NAME)),
        Box::new(residual_plot(values, &reversed)),
        Box::new(qq_plot(values).title(NAME)),
        Box::new(
            Stack::new(values.to_vec()).layer(NAME, reversed.clone()).layer("a", values.to_vec()),
        ),
        Box::new(
            Stack::new(reversed.clone())
                .layer("a", values.to_vec())
                .total(NAME)
                .marker(first, NAME)
                .log_x()
                .falling_x(),
        ),
        Box::new(coefficient_path(values, [(NAME, &reversed), ("a", &values.to_vec())])),
        Box::new(line().log_y().markers().height(first)),
        Box::new(Scatter::new(points()).title(NAME)),
        Box::new(Scatter::new(points()).diagonal()),
        Box::new(
            Forest::new(points().map(|(a, b)| (NAME, a, b, first)))
                .title(NAME)
                .highlight([NAME])
                .reference(first),
        ),
        Box::new(Forest::new(values.iter().map(|&v| (NAME, v, first, v))).decimals(3)),
        Box::new(Marks::new(points().map(|(a, b)| (NAME, a, b, (b, first)))).x_label(NAME)),
        Box::new(
            Marks::new(points().map(|(a, b)| ("a", a, b, (first, b)))).log_x().highlight(["a"]),
        ),
        Box::new(Density::new(&narrow, &other).title(NAME)),
        Box::new(Density::with_diagonal(&narrow, &other)),
        Box::new(Boxes::new([(NAME, values.to_vec()), ("a", Vec::new())])),
        Box::new(Boxes::by_level(&narrow, &other)),
        Box::new(predicted_vs_true(&narrow, &other)),
        Box::new(Bars::new(named()).title(NAME).reference(first, NAME)),
        Box::new(Bars::new(named()).vertical().decimals(40).reference(first, NAME).highlight(NAME)),
        Box::new(Heat::new([values, &values[..values.len() / 2]]).rows([NAME]).max(first)),
        Box::new(Pictures::new().picture(NAME, 3, values).picture(NAME, 1, values).title(NAME)),
        Box::new(Heat::new(values.iter().map(|&v| [v])).columns([NAME])),
    ]
}

fn check(values: &[f64]) {
    for (i, chart) in charts(values).iter().enumerate() {
        let standalone = chart.to_svg();
        for svg in [&standalone, &chart.draw(300.0).embedded()] {
            let doc = roxmltree::Document::parse(svg)
                .unwrap_or_else(|e| panic!("chart {i} of {values:?} is not XML: {e}\n{svg}"));
            let root = doc.root_element();
            assert_eq!(root.attribute("role"), Some("img"));
            assert!(
                root.children().any(|n| n.has_tag_name(("http://www.w3.org/2000/svg", "title")))
            );
            for node in doc.descendants().filter(|n| !n.has_tag_name("style")) {
                for a in node.attributes() {
                    check_words(a.value(), i, values);
                }
                check_words(node.text().unwrap_or(""), i, values);
            }
            check_inside(&doc, i);
        }
        assert_eq!(standalone, charts(values)[i].to_svg(), "chart {i} is not repeatable");
    }
}

fn check_words(text: &str, chart: usize, values: &[f64]) {
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    let bad = words.find(|w| ["nan", "inf", "infinity"].contains(&w.to_lowercase().as_str()));
    assert_eq!(bad, None, "chart {chart} of {values:?} says {text:?}");
}

/// Marks lie within the drawing.
fn check_inside(doc: &roxmltree::Document<'_>, chart: usize) {
    let root = doc.root_element();
    let view: Vec<f64> =
        root.attribute("viewBox").unwrap().split(' ').map(|v| v.parse().unwrap()).collect();
    let (left, top) = (view[0] - 1.0, view[1] - 1.0);
    let (right, bottom) = (view[0] + view[2] + 1.0, view[1] + view[3] + 1.0);
    for node in doc.descendants() {
        for a in node.attributes() {
            let range = match a.name() {
                "x" | "x1" | "x2" | "cx" => left..=right,
                "y" | "y1" | "y2" | "cy" => top..=bottom,
                _ => continue,
            };
            let v: f64 = a.value().parse().unwrap();
            assert!(range.contains(&v), "chart {chart}: {} = {v} not in {range:?}", a.name());
        }
    }
}

#[test]
fn ordinary_and_degenerate_data() {
    check(&[]);
    check(&[f64::NAN]);
    check(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
    check(&[0.0]);
    check(&[-0.0, 0.0]);
    check(&[3.0; 20]);
    check(&[1.0, 2.0, 3.0, f64::NAN, 5.0]);
    check(&[f64::MAX, f64::MIN, 5e-324, 1e300, -1e300]);
    check(&[1e300, -1e300, 0.0]);
    check(&[1e15, 1e15 + 1.0, 1e15 + 2.0]);
    check(&[1e-300, 1e300]);
    check(&(0..5000).map(|i| f64::from(i).sin() * 1e3).collect::<Vec<_>>());
}

#[test]
fn names_survive_escaping() {
    let svg = Bars::new([(NAME, 1.0)]).to_svg();
    let doc = roxmltree::Document::parse(&svg).unwrap();
    let shown = NAME.replace(['\u{1}', '\u{fffe}'], "\u{fffd}");
    assert!(doc.descendants().any(|n| n.text() == Some(&shown)), "{svg}");
}

#[test]
fn widths_that_make_no_sense_are_replaced() {
    let line = Line::new().series("a", [(0.0, 1.0), (1.0, 2.0)]);
    for width in [f64::NAN, f64::INFINITY, -5.0, 0.0, 1e9] {
        let drawing = line.draw(width);
        assert!((240.0..=2000.0).contains(&drawing.width()), "{width}");
    }
}

#[test]
fn a_page_of_everything_is_well_formed() {
    let values: Vec<f64> = (0..50).map(|i| f64::from(i) - 20.0).collect();
    let html = charts(&values)
        .iter()
        .fold(Page::new(NAME), |page, chart| page.section(NAME, |s| s.chart(chart).text(NAME)))
        .to_html();
    let body = &html[html.find("<body>").unwrap()..html.find("</html>").unwrap()];
    roxmltree::Document::parse(body).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_bit_pattern_is_drawn_safely(bits in prop::collection::vec(any::<u64>(), 0..12)) {
        check(&bits.into_iter().map(f64::from_bits).collect::<Vec<_>>());
    }

    #[test]
    fn any_scale_is_drawn_safely(
        values in prop::collection::vec(-1.0..1.0f64, 1..40), power in -310i32..310,
    ) {
        check(&values.iter().map(|v| v * 10f64.powi(power)).collect::<Vec<_>>());
    }

    #[test]
    fn any_text_is_escaped(text in any::<String>()) {
        let xml = format!("<a b=\"{0}\">{0}</a>", escape(&text));
        prop_assert!(roxmltree::Document::parse(&xml).is_ok());
    }
}
