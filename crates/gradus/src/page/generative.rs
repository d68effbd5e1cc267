//! The page of a model that draws data and kept samples of the course of its fit: the terms of its loss, samples of the same noise over
//! the epochs, paths between codes, and the nearest images of the data.

use super::reconstruction::scatter;
use super::{close, held_out, objective, starts, stats};
use gradus_base::{Result, parallel};
use gradus_core::dataset::Dataset;
use gradus_core::density::{Generate, Progress};
use gradus_core::estimator::AnyFitted;
use gradus_data::{Dense, ImageShape, Inputs, Samples};
use gradus_report::{Line, Page, Pictures, Scatter, Section, number};

/// Images of each epoch, of the finished model, and with their neighbours.
const EACH: usize = 8;
const DRAWN: usize = 24;
const COMPARED: usize = 8;
/// Paths between codes, and images on each.
const PATHS: (usize, usize) = (4, 9);
/// Images along a side of the map of a code of two numbers.
const MAP: usize = 11;
/// Points of a table that are drawn, and images of the data that are looked through for neighbours.
const POINTS: usize = 1_000;
const LOOKED_AT: usize = 20_000;
/// Images whose nearest other image of the data is a measure of what is near.
const PAIRS: usize = 100;

/// The model as one that draws samples, if it kept some of the course of its fit.
pub(super) fn generator(fitted: &AnyFitted) -> Option<(&dyn Generate, &Progress)> {
    let model = fitted.model.generator()?;
    Some((model, model.progress()?))
}

/// The page.
///
/// # Errors
/// If nothing can be drawn, or the samples have other features than the model.
pub(super) fn generative_page(
    fitted: &AnyFitted,
    (model, progress): (&dyn Generate, &Progress),
    title: &str,
    samples: Option<(&str, &Samples)>,
) -> Result<Page> {
    let report = &fitted.report;
    let drawn = model.generate(POINTS.min(if is_images(model)? { DRAWN } else { POINTS }), 0)?;
    let drawn: &Samples = drawn.of_kind()?;
    let inputs = drawn.inputs().clone();
    let subtitle = format!("{} iterations, {}.", report.iterations, report.stop_reason);
    let mut headline: Vec<(String, String, String)> = Vec::new();
    if let Some(score) = report.validation {
        headline.push((format!("held-out {}", report.metric), number(score), String::new()));
    }
    let mut page = Page::new(title).subtitle(subtitle).stats(stats(headline, fitted));
    page = page.section("How the fit went", |section| {
        let section = match held_out(fitted, &report.metric) {
            Some(line) => {
                section.columns(|left| left.chart(line), |right| right.chart(objective(fitted)))
            }
            None => section.chart(objective(fitted)),
        };
        let terms = terms(fitted);
        terms.chunks(2).fold(section, |section, pair| match pair {
            [left, right] => section.columns(|it| it.chart(left), |it| it.chart(right)),
            one => one.iter().fold(section, |section, chart| section.chart(chart)),
        })
    });
    page = page.section("Samples over the course of the fit", |section| {
        let section = section.text(
            "Each epoch draws from the same noise, so that what changes is what was learned.",
        );
        let width = inputs.n_features().max(1);
        match &inputs {
            Inputs::Images(shape) => progress.each().fold(section, |section, (epoch, values)| {
                let rows = values.chunks_exact(width).take(EACH);
                let images: Vec<Vec<f64>> =
                    rows.map(|row| row.iter().map(|x| f64::from(*x)).collect()).collect();
                section
                    .chart(pictures(&format!("Epoch {epoch}"), &images, *shape, |_| String::new()))
            }),
            _ => {
                let of = |(epoch, values): (u64, &[f32])| {
                    points(&format!("Epoch {epoch}"), values, width)
                };
                let charts: Vec<Scatter> = progress.each().map(of).collect();
                charts.chunks(2).fold(section, |section, pair| match pair {
                    [left, right] => section.columns(|it| it.chart(left), |it| it.chart(right)),
                    one => one.iter().fold(section, |section, chart| section.chart(chart)),
                })
            }
        }
    });
    page = page.section("Samples", |section| {
        let dense = drawn.features().to_dense();
        match &inputs {
            Inputs::Images(shape) => {
                let images: Vec<Vec<f64>> = dense.rows().map(<[f64]>::to_vec).collect();
                section.chart(pictures("Drawn by the model", &images, *shape, |_| String::new()))
            }
            _ => {
                let values: Vec<f32> = dense.values().iter().map(|x| *x as f32).collect();
                section.chart(points("Drawn by the model", &values, dense.n_cols()))
            }
        }
    });
    if let Inputs::Images(shape) = inputs {
        page = codes(page, fitted, model, shape)?;
    }
    if let Some((source, samples)) = samples.filter(|(_, samples)| !samples.is_empty()) {
        page = with_data(page, fitted, drawn, source, samples)?;
    }
    Ok(close(page, fitted))
}

/// Whether the model draws images.
fn is_images(model: &dyn Generate) -> Result<bool> {
    let none = model.generate(0, 0)?;
    Ok(matches!(none.of_kind::<Samples>()?.inputs(), Inputs::Images(_)))
}

/// A curve for each measure of the fit but the learning rate.
fn terms(fitted: &AnyFitted) -> Vec<Line> {
    let trace = &fitted.report.trace;
    let Some(last) = trace.last() else { return Vec::new() };
    let names = last.measures.iter().map(|measure| measure.name.clone());
    let names = names.filter(|name| name != "learning rate");
    names
        .map(|name| {
            let line = Line::new().title(&name).x_label("iteration").y_label(&name).markers();
            let value = |point: &gradus_core::report::Iteration| {
                let found = point.measures.iter().find(|measure| measure.name == name);
                found.map(|measure| measure.value).filter(|value| value.is_finite())
            };
            let series = starts(fitted, value).into_iter();
            series.fold(line, |line, (start, points)| line.series(start, points))
        })
        .collect()
}

/// Images side by side; of images in colour the mean of the channels.
fn pictures(
    title: &str,
    images: &[Vec<f64>],
    shape: ImageShape,
    name: impl Fn(usize) -> String,
) -> Pictures {
    let channels = shape.channels.max(1);
    let mean = |pixel: &[f64]| pixel.iter().sum::<f64>() / channels as f64;
    images.iter().enumerate().fold(Pictures::new().title(title), |drawn, (at, image)| {
        let pixels: Vec<f64> = image.chunks_exact(channels).map(mean).collect();
        drawn.picture(name(at), shape.width, &pixels)
    })
}

/// The first two columns of a table as points.
fn points(title: &str, values: &[f32], width: usize) -> Scatter {
    let point = |row: &[f32]| (f64::from(row[0]), row.get(1).map_or(0.0, |y| f64::from(*y)));
    Scatter::new(values.chunks_exact(width.max(1)).take(POINTS).map(point)).title(title)
}

/// Paths between codes, and the map of a code of two numbers.
fn codes(
    mut page: Page,
    fitted: &AnyFitted,
    model: &dyn Generate,
    shape: ImageShape,
) -> Result<Page> {
    let rows = |data: Box<dyn Dataset>| -> Result<Vec<Vec<f64>>> {
        let dense = data.of_kind::<Samples>()?.features().to_dense();
        Ok(dense.rows().map(<[f64]>::to_vec).collect())
    };
    if let Some(found) = model.interpolate(PATHS.0, PATHS.1, 0) {
        let images = rows(found?)?;
        page = page.section("Between two codes", |section| {
            let section = section.text(
                "Each row goes from one random code to another along an arc, on which every code is as probable as a drawn one.",
            );
            images.chunks(PATHS.1).enumerate().fold(section, |section, (at, path)| {
                section.chart(pictures(&format!("Path {}", at + 1), path, shape, |_| String::new()))
            })
        });
    }
    let Some(transformer) = fitted.model.transformer() else { return Ok(page) };
    if transformer.output_names().len() == 2 {
        // Places that cut the normal distribution into parts of the same probability.
        let place =
            |at: usize| gradus_base::random::normal_quantile((at as f64 + 0.5) / MAP as f64);
        let grid = Dense::from_fn(MAP * MAP, 2, |cell, at| {
            place(if at == 0 { cell % MAP } else { MAP - 1 - cell / MAP })
        });
        if let Some(found) = transformer.inverse(&grid) {
            let found = found?;
            let picture = map(&found, shape);
            page = page.section("Map of the codes", |section| {
                section
                    .text("The image of each code, over quantiles of the normal distribution of both numbers.")
                    .chart(picture)
            });
        }
    }
    Ok(page)
}

/// Images of a square of codes as one picture.
fn map(images: &Dense<f64>, shape: ImageShape) -> Pictures {
    let ImageShape { height, width, channels } = shape;
    let row_pixels = MAP * width;
    let mut pixels = vec![0.0; row_pixels * MAP * height];
    for (cell, image) in images.rows().enumerate() {
        let (top, left) = (cell / MAP * height, cell % MAP * width);
        for (at, pixel) in image.chunks_exact(channels.max(1)).enumerate() {
            let place = (top + at / width) * row_pixels + left + at % width;
            pixels[place] = pixel.iter().sum::<f64>() / channels.max(1) as f64;
        }
    }
    Pictures::new().title("Images of codes").picture("", row_pixels, &pixels)
}

/// Sections that compare with data: nearest neighbours of images, and codes.
fn with_data(
    mut page: Page,
    fitted: &AnyFitted,
    drawn: &Samples,
    source: &str,
    samples: &Samples,
) -> Result<Page> {
    drawn.inputs().check_width(samples.n_features())?;
    if let Inputs::Images(shape) = drawn.inputs() {
        let shape = *shape;
        let rows: Vec<u32> = (0..samples.len().min(LOOKED_AT) as u32).collect();
        let data = samples.select_rows(&rows).features().to_dense();
        let images = drawn.features().to_dense();
        let chosen: Vec<usize> = (0..images.n_rows().min(COMPARED)).collect();
        let near: Vec<(usize, f64)> =
            chosen.iter().map(|&at| nearest(&data, images.row(at), None)).collect();
        let all = parallel::map(0..images.n_rows(), |at| nearest(&data, images.row(at), None).1);
        let pairs = data.n_rows().min(PAIRS);
        let among = parallel::map(0..pairs, |at| nearest(&data, data.row(at), Some(at)).1);
        let middle = |mut values: Vec<f64>| {
            values.sort_unstable_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
        };
        let (of_samples, of_data) = (middle(all), middle(among));
        let heading = format!("The nearest images of {source}");
        let above: Vec<Vec<f64>> = chosen.iter().map(|&at| images.row(at).to_vec()).collect();
        let below: Vec<Vec<f64>> = near.iter().map(|(at, _)| data.row(*at).to_vec()).collect();
        page = page.section(&heading, |section| {
            let section = section
                .text("A model that memorised its training images draws copies of them: compare with those it was fitted to.")
                .chart(pictures("Drawn", &above, shape, |at| (at + 1).to_string()))
                .chart(pictures("The nearest image", &below, shape, |at| format!("at {}", number(near[at].1))));
            if pairs < 2 {
                return section;
            }
            section.text(format!(
                "Median distance of a drawn image to its nearest image of {source}: {}; of an image of {source} to its nearest other one: \
                 {}. Much less than that is a sign of copies.",
                number(of_samples),
                number(of_data)
            ))
        });
    }
    if let Some(model) = fitted.model.transformer() {
        let codes = model.transform(samples.features())?;
        let heading = format!("Codes of {source}");
        page = page.section(&heading, |section: Section| section.chart(scatter(samples, &codes)));
    }
    Ok(page)
}

/// The row that is nearest to an image, but one that is left out, and its distance.
fn nearest(data: &Dense<f64>, image: &[f64], but: Option<usize>) -> (usize, f64) {
    let distance = |row: &[f64]| row.iter().zip(image).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let others = data.rows().enumerate().filter(|(at, _)| Some(*at) != but);
    let found = others.map(|(at, row)| (at, distance(row))).min_by(|a, b| a.1.total_cmp(&b.1));
    found.map_or((0, f64::NAN), |(at, squared)| (at, squared.sqrt()))
}
