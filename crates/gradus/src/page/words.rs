//! The page of vectors of words: neighbours of frequent words, a map of them, frequency against length.

use super::{close, objective, stats};
use gradus_base::Result;
use gradus_core::embed::{Embed, Query};
use gradus_core::estimator::AnyFitted;
use gradus_report::{Cell, Density, Forest, Marks, Page, PageTable, TableColumn, number};

/// Words whose neighbours are listed, and neighbours of each.
const LISTED: usize = 40;
const NEIGHBOURS: usize = 6;
/// The most frequent words are mostly function words: those listed come after them.
const FUNCTION_WORDS: usize = 100;
/// Words of the map.
const MAPPED: usize = 150;

/// How vectors do on analogies.
#[derive(Clone, Debug)]
pub struct TestedAnalogies {
    /// The source of the analogies.
    pub source: String,
    /// The sections, and at the end all together.
    pub sections: Vec<AnalogySection>,
}

/// A section of a set of analogies.
#[derive(Clone, Debug)]
pub struct AnalogySection {
    /// The name of the section.
    pub name: String,
    /// Analogies that were completed rightly.
    pub right: u64,
    /// Analogies of which the model knows all words.
    pub asked: u64,
    /// The share of right ones among those asked, and its interval; none if none was asked.
    pub accuracy: Option<(f64, f64, f64)>,
}

/// The page, with analogies by section if the model was tested on some.
///
/// # Errors
/// Those of the search for neighbours.
pub fn words_page(
    fitted: &AnyFitted,
    model: &dyn Embed,
    title: &str,
    tested: Option<&TestedAnalogies>,
) -> Result<Page> {
    let (n, what, report) = (model.names().len(), model.what(), &fitted.report);
    let ranking = model.ranking();
    let skipped = FUNCTION_WORDS.min(n / 10);
    let chosen: Vec<usize> = ranking.iter().skip(skipped).map(|&at| at as usize).collect();
    let name = |at: usize| model.names().get(at).to_string();
    let subtitle = format!(
        "{} vectors of {} coordinates: {} iterations, {}.",
        number(n as f64),
        model.dimension(),
        report.iterations,
        report.stop_reason
    );
    let listed: Vec<usize> = chosen.iter().copied().take(LISTED).collect();
    let queries: Vec<Query> = listed
        .iter()
        .map(|&at| Query { vector: model.vector(at).to_vec(), n: NEIGHBOURS, except: vec![at] })
        .collect();
    let near = model.nearest_many(&queries)?;
    let mut table = PageTable::new([
        TableColumn::text(what),
        TableColumn::number("count"),
        TableColumn::text("nearest, with their cosines"),
    ]);
    for (&at, near) in listed.iter().zip(&near) {
        let near: Vec<String> =
            near.iter().map(|near| format!("{} {:.2}", name(near.at), near.similarity)).collect();
        let count = model.counts().map_or(f64::NAN, |counts| counts[at] as f64);
        let cells: [Cell; 3] = [name(at).into(), count.into(), near.join(", ").into()];
        table = table.row(cells);
    }
    let mapped: Vec<usize> = chosen.into_iter().take(MAPPED).collect();
    let places = components(model, &mapped);
    let marks = mapped.iter().zip(&places).map(|(&at, &(x, y))| (name(at), x, y, (y, y)));
    let mut page = Page::new(title).subtitle(subtitle).stats(stats(Vec::new(), fitted)).section(
        "Neighbours",
        |section| {
            let after = if skipped > 0 {
                format!("Frequent {what}s, after the {skipped} most frequent.")
            } else {
                format!("The most frequent {what}s.")
            };
            section.text(after).table(&table)
        },
    );
    if let Some(tested) = tested {
        page = analogies(page, tested);
    }
    page = page.section("Map", |section| {
        section
            .text(format!("{} frequent {what}s in the first two principal components of their vectors of length 1.", mapped.len()))
            .chart(Marks::new(marks).x_label("first component").y_label("second component"))
    });
    if let Some(counts) = model.counts() {
        let length = |at: usize| model.vector(at).iter().map(|x| x * x).sum::<f32>().sqrt();
        let x: Vec<f32> = counts.iter().map(|&count| (count.max(1) as f32).log10()).collect();
        let y: Vec<f32> = (0..n).map(length).collect();
        page = page.section("Frequency and length", |section| {
            section
                .text("Long vectors belong to words that are used in one way; those of rare words are not learned to the end.")
                .chart(Density::new(&x, &y).x_label("count (log 10)").y_label("length of the vector"))
        });
    }
    page = page.section("The fit", |section| section.chart(objective(fitted)));
    Ok(close(page, fitted))
}

/// The share of analogies that were completed, by section.
fn analogies(page: Page, tested: &TestedAnalogies) -> Page {
    let mut table = PageTable::new([
        TableColumn::text("section"),
        TableColumn::number("right"),
        TableColumn::number("asked"),
    ]);
    for section in &tested.sections {
        let cells: [Cell; 3] = [
            section.name.clone().into(),
            (section.right as f64).into(),
            (section.asked as f64).into(),
        ];
        table = table.row(cells);
    }
    let rows = tested.sections.iter().filter_map(|section| {
        let (share, low, high) = section.accuracy?;
        Some((section.name.clone(), 100.0 * share, 100.0 * low, 100.0 * high))
    });
    let last = tested.sections.last().map(|section| section.name.clone());
    page.section("Analogies", |section| {
        section
            .text(format!(
                "Analogies of {} that the model completes, of those whose words it knows; intervals hold the share with \
                 95 % confidence.",
                tested.source
            ))
            .chart(Forest::new(rows).x_label("right, %").highlight(last).decimals(1))
            .table(&table)
    })
}

/// The first two principal components of vectors, each of length 1, by power iteration from a fixed start.
fn components(model: &dyn Embed, places: &[usize]) -> Vec<(f64, f64)> {
    let k = model.dimension();
    let mut rows: Vec<Vec<f64>> = places
        .iter()
        .map(|&at| {
            let vector = model.vector(at);
            let scale = gradus_core::embed::inverse_length(vector);
            vector.iter().map(|&x| f64::from(x) * scale).collect()
        })
        .collect();
    let n = rows.len().max(1) as f64;
    let mean: Vec<f64> = (0..k).map(|v| rows.iter().map(|row| row[v]).sum::<f64>() / n).collect();
    rows.iter_mut().for_each(|row| row.iter_mut().zip(&mean).for_each(|(x, mean)| *x -= mean));
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let mut axes: Vec<Vec<f64>> = Vec::new();
    for axis in 0..2 {
        let mut v: Vec<f64> =
            (0..k).map(|i| (12.9898 * (i + 1) as f64 * (axis + 1) as f64).sin()).collect();
        for _ in 0..100 {
            let mut next = vec![0.0; k];
            for row in &rows {
                let along = dot(row, &v);
                next.iter_mut().zip(row).for_each(|(x, y)| *x += along * y);
            }
            for other in &axes {
                let along = dot(&next, other);
                next.iter_mut().zip(other).for_each(|(x, y)| *x -= along * y);
            }
            let length = dot(&next, &next).sqrt();
            if length.is_nan() || length <= 1e-12 {
                next.fill(0.0);
                v = next;
                break;
            }
            v = next.iter().map(|x| x / length).collect();
        }
        axes.push(v);
    }
    rows.iter().map(|row| (dot(row, &axes[0]), dot(row, &axes[1]))).collect()
}
