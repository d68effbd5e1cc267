//! The picture: densities and samples of each model as small pictures in one frame.

use super::{GenerateAnswer, GenerateRun};
use crate::lab::{Drawn, standalone};
use gradus_data::Dense;
use gradus_report::{Cell, Page, PageTable, Pictures, Rows, TableColumn, number};

/// Pixels along a side of a picture.
const SIDE: usize = 44;
/// The room around the data, as a share of its range.
const ROOM: f64 = 0.18;

/// The part of the plane that is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    low: [f64; 2],
    side: f64,
}

impl Frame {
    /// A square around points.
    pub(super) fn of(points: &Dense<f64>) -> Self {
        let bounds = |at: usize| {
            let values = points.rows().map(|row| row[at]);
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)))
        };
        let ((left, right), (bottom, top)) = (bounds(0), bounds(1));
        let side = (1.0 + 2.0 * ROOM) * (right - left).max(top - bottom).max(1e-9);
        Self { low: [0.5 * (left + right - side), 0.5 * (bottom + top - side)], side }
    }

    /// The middle of each pixel, row by row from the top.
    pub(super) fn centres(&self) -> Dense<f64> {
        let step = self.side / SIDE as f64;
        Dense::from_fn(SIDE * SIDE, 2, |pixel, at| {
            let place = if at == 0 { pixel % SIDE } else { SIDE - 1 - pixel / SIDE };
            self.low[at] + (place as f64 + 0.5) * step
        })
    }

    /// How many points lie in each pixel, as a root: single points are seen beside many.
    fn counts(&self, points: impl IntoIterator<Item = [f64; 2]>) -> Vec<f64> {
        let mut counts = vec![0.0f64; SIDE * SIDE];
        for [x, y] in points {
            let place = |x: f64, low: f64| (x - low) / self.side * SIDE as f64;
            let (column, row) = (place(x, self.low[0]), place(y, self.low[1]));
            let inside = |at: f64| (0.0..SIDE as f64).contains(&at);
            if inside(column) && inside(row) {
                counts[(SIDE - 1 - row as usize) * SIDE + column as usize] += 1.0;
            }
        }
        counts.iter().map(|count| count.sqrt().min(3.0)).collect()
    }
}

/// Epochs of the course that are drawn: the first, some between, and the last that was kept.
fn chosen<T>(course: &[T]) -> Vec<&T> {
    let last = course.len().saturating_sub(1);
    let mut at: Vec<usize> =
        [0.0, 0.35, 0.7, 1.0].map(|share| (share * last as f64) as usize).to_vec();
    at.dedup();
    at.into_iter().filter_map(|at| course.get(at)).collect()
}

impl GenerateAnswer {
    fn row(&self, frame: &Frame, run: &GenerateRun) -> Pictures {
        let found = &run.pictures;
        let title = format!(
            "{}: {} of {} modes, {:.1} % off the data",
            run.model,
            run.covered,
            self.modes,
            100.0 * run.off
        );
        let mut row = Pictures::new().title(title);
        for (epoch, points) in chosen(&found.course) {
            row =
                row.picture(format!("epoch {epoch}"), SIDE, &frame.counts(points.iter().copied()));
        }
        row = row.picture("samples", SIDE, &frame.counts(found.samples.iter().copied()));
        match &found.density {
            Some(density) => {
                // The root, as of the points.
                let roots: Vec<f64> = density.iter().map(|x| x.sqrt()).collect();
                let name = if run.is_bound { "bound on the density" } else { "density" };
                row.picture(name, SIDE, &roots)
            }
            None => row,
        }
    }

    fn data_row(&self, frame: &Frame) -> Pictures {
        let points = self.points.rows().map(|row| [row[0], row[1]]);
        Pictures::new().title(format!("{} points to learn from", self.samples)).picture(
            "data",
            SIDE,
            &frame.counts(points),
        )
    }

    fn flow(&self, frame: &Frame) -> Option<Pictures> {
        let run = self.runs.iter().find(|run| !run.pictures.flow.is_empty())?;
        let title =
            "diffusion: the way of samples from noise, by the share of the steps that is left";
        let flow = run.pictures.flow.iter();
        Some(flow.fold(Pictures::new().title(title), |row, (share, points)| {
            row.picture(
                format!("{:.0} %", 100.0 * share),
                SIDE,
                &frame.counts(points.iter().copied()),
            )
        }))
    }
}

impl Drawn for GenerateAnswer {
    fn svg(&self) -> String {
        let frame = Frame::of(&self.points);
        let rows = self.runs.iter().map(|run| self.row(&frame, run));
        let all = [self.data_row(&frame)].into_iter().chain(rows).chain(self.flow(&frame));
        standalone(&Rows::new(all).title("Generative models side by side"), 900.0)
    }

    fn page(&self) -> Page {
        let frame = Frame::of(&self.points);
        let mut table = PageTable::new([
            TableColumn::text("model"),
            TableColumn::number("seconds"),
            TableColumn::number("modes"),
            TableColumn::number("off the data"),
            TableColumn::number("precision"),
            TableColumn::number("recall"),
            TableColumn::number("coverage"),
            TableColumn::number("Fréchet"),
            TableColumn::text("log density"),
            TableColumn::text("faults"),
        ]);
        for run in &self.runs {
            let percent = |share: f64| format!("{:.1} %", 100.0 * share);
            let cells: Vec<Cell> = vec![
                run.model.into(),
                format!("{:.1}", run.seconds).into(),
                format!("{} of {}", run.covered, self.modes).into(),
                percent(run.off).into(),
                percent(run.manifold.precision).into(),
                percent(run.manifold.recall).into(),
                percent(run.manifold.coverage).into(),
                number(run.frechet).into(),
                run.shown_density().into(),
                run.verdict.as_str().into(),
            ];
            table = table.row(cells);
        }
        let page = Page::new("Generative models side by side")
            .subtitle(format!("{} points of {} modes", self.samples, self.modes))
            .section("What they learned", |s| {
                s.text(
                    "Dense networks of one size learn the same points. A mode counts as covered with a quarter of its share of the samples; a \
                     sample is off the data beyond four deviations of the noise.",
                )
                .chart(self.data_row(&frame))
                .table(&table)
            })
            .section("Samples over the course of the fit", |s| {
                self.runs.iter().fold(s, |s, run| s.chart(self.row(&frame, run))).note(
                    "Each epoch draws from the same noise. Shades are the root of the number of points in a pixel, and of the density.",
                )
            });
        match self.flow(&frame) {
            Some(flow) => page.section("From noise to data", |s| {
                s.text("Noise is all that there is at first; the figure appears in the last third of the steps.").chart(flow)
            }),
            None => page,
        }
        .footer("gradus lab generate")
    }
}

impl GenerateRun {
    /// The mean log density as tables show it.
    pub fn shown_density(&self) -> String {
        match (self.log_density, self.is_bound) {
            (None, _) => "none".into(),
            (Some(value), true) => format!("≥ {value:.3}"),
            (Some(value), false) => format!("{value:.3}"),
        }
    }
}
