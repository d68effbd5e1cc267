//! Where a vision transformer looks: its attention drawn over images.

use gradus_base::Result;
use gradus_core::estimator::AnyFitted;
use gradus_core::predict::Predict as _;
use gradus_data::{ImageShape, Samples, Target};
use gradus_nn::supervised::NetworkModel;
use gradus_nn::vit::VitNetwork;
use gradus_report::{Page, Pictures};

/// Images that are drawn.
const DRAWN: usize = 14;

/// The vision transformer of a model, if it is one.
fn transformer(fitted: &AnyFitted) -> Option<&NetworkModel<VitNetwork>> {
    let any: &dyn std::any::Any = fitted.model.as_ref();
    any.downcast_ref()
}

/// The page with a section on where the model looks, if it is a vision transformer and there are images.
///
/// # Errors
/// If the images have another size than those of training.
pub(super) fn attention(page: Page, fitted: &AnyFitted, images: Option<&Samples>) -> Result<Page> {
    let (Some(model), Some(images)) = (transformer(fitted), images) else { return Ok(page) };
    let rows = chosen(images);
    if rows.is_empty() {
        return Ok(page);
    }
    let drawn = images.select_rows(&rows);
    let (maps, found) = (model.attention(drawn.features())?, model.classes(drawn.features())?);
    let ImageShape { height, width, channels } = model.architecture().shape;
    let patch = model.architecture().patch;
    let columns = maps.grid().1;
    let dense = drawn.features().to_dense();
    // Brightness of each pixel, from the darkest up; the attention of its patch.
    let picture = |image: usize| -> Vec<f64> {
        let mean = |pixel: &[f64]| pixel.iter().sum::<f64>() / channels as f64;
        let pixels: Vec<f64> = dense.row(image).chunks_exact(channels).map(mean).collect();
        let least = pixels.iter().copied().fold(f64::INFINITY, f64::min);
        pixels.iter().map(|x| x - least).collect()
    };
    let over = |map: &[f64]| -> Vec<f64> {
        let of = |at: usize| map[at / width / patch * columns + at % width / patch];
        (0..height * width).map(of).collect()
    };
    let labels = model.outputs().labels();
    let name = |image: usize| -> String {
        let Some(labels) = labels else { return String::new() };
        let predicted = labels.get(found[image] as usize).to_string();
        match drawn.target() {
            Target::Classes { codes, labels } => {
                let truth = labels.get(codes[image] as usize).to_string();
                if truth == predicted { truth } else { format!("{truth}, taken for {predicted}") }
            }
            Target::Values(_) => predicted,
        }
    };
    let (blocks, heads) = maps.blocks_and_heads();
    let last = (0..maps.len()).fold(Pictures::new().title("The last block"), |all, image| {
        all.overlaid(name(image), width, &picture(image), &over(&maps.of_class(image, blocks - 1)))
    });
    let through = (0..maps.len())
        .fold(Pictures::new().title("Through all blocks"), |all, image| {
            all.overlaid(name(image), width, &picture(image), &over(&maps.rollout(image)))
        });
    let first =
        (0..blocks).fold(Pictures::new().title("The first image, block by block"), |all, at| {
            let block = format!("block {}", at + 1);
            all.overlaid(block, width, &picture(0), &over(&maps.of_class(0, at)))
        });
    Ok(page.section("Where it looks", |section| {
        section
            .text(format!(
                "How much the class token attends to each patch of {patch} × {patch} pixels, the mean of {heads} heads: the \
                 stronger the colour, the more of the answer comes from there. First in the last block, then by attention \
                 rollout, which follows what each patch passes on through all blocks."
            ))
            .chart(last)
            .chart(through)
            .chart(first)
    }))
}

/// The rows that are drawn: the first of each class, then the first of all.
fn chosen(images: &Samples) -> Vec<u32> {
    let n = images.len() as u32;
    let mut rows = Vec::new();
    if images.has_target()
        && let Target::Classes { codes, labels } = images.target()
    {
        let mut seen = vec![false; labels.len()];
        for (row, &code) in codes.iter().enumerate() {
            if !std::mem::replace(&mut seen[code as usize], true) {
                rows.push(row as u32);
            }
        }
        rows.truncate(DRAWN);
    }
    let missing = DRAWN.saturating_sub(rows.len());
    let others: Vec<u32> = (0..n).filter(|row| !rows.contains(row)).take(missing).collect();
    rows.extend(others);
    rows.sort_unstable();
    rows
}
