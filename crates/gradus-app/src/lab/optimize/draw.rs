//! The picture: paths over level lines, and the values beside it.

use super::{OptimizeAnswer, place, shown_rate};
use crate::lab::{Drawn, standalone};
use gradus_report::{Beside, Cell, Contour, Line, Page, PageTable, TableColumn, number};

/// Below this the rest is rounding.
const SMALLEST: f64 = 1e-16;
/// Above this share of the start a run is lost, and would flatten the rest.
const LARGEST: f64 = 1e3;

/// The paths over level lines, and the values by iteration.
fn charts(answer: &OptimizeAnswer) -> (Contour, Line) {
    let (surface, start) = (&answer.drawn, answer.start);
    // A start outside what is usually shown widens it.
    let wide = |(low, high): (f64, f64), at: f64| {
        let margin = 0.08 * (high - low).max((at - low).abs()).max((at - high).abs());
        (low.min(at - margin), high.max(at + margin))
    };
    let (x, y) = (wide(surface.x, start[0]), wide(surface.y, start[1]));
    let mut contour = Contour::new(x, y, |x, y| surface.objective.value(&[x, y]))
        .title(format!("Paths down {}", surface.formula))
        .x_label(surface.axes[0])
        .y_label(surface.axes[1])
        .height(520.0);
    for minimum in &surface.minima {
        contour = contour.mark(minimum[0], minimum[1], "minimum");
    }
    if let Some(saddle) = surface.saddle {
        contour = contour.mark(saddle[0], saddle[1], "saddle");
    }
    let mut line = Line::new()
        .title("Value above the minimum, by iteration")
        .x_label("iteration")
        .y_label("value − minimum (log scale)")
        .log_y()
        .height(520.0);
    let top = LARGEST * (surface.objective.value(&start) - surface.least).max(1e-3);
    for run in &answer.runs {
        let points = run.outcome.trace.points.iter();
        contour = contour.path(run.optimizer, points.map(|x| (x[0], x[1])));
        let mut values = Vec::new();
        for step in &run.outcome.trace.steps {
            let above = step.value - surface.least;
            values.push((step.iteration as f64, above.clamp(SMALLEST, top)));
            if above <= SMALLEST || above >= top {
                break;
            }
        }
        line = line.series(run.optimizer, values);
    }
    (contour, line)
}

impl Drawn for OptimizeAnswer {
    fn svg(&self) -> String {
        let (contour, line) = charts(self);
        let title = format!("Paths of optimisers on {}", self.surface);
        standalone(&Beside::new(&contour, &line).share(0.56).title(title), 1200.0)
    }

    fn page(&self) -> Page {
        let (contour, line) = charts(self);
        let rates = self.runs.iter().any(|run| run.predicted_rate.is_some());
        let mut columns = vec![
            TableColumn::text("optimizer"),
            TableColumn::number("step"),
            TableColumn::number("iterations"),
            TableColumn::number("gradients"),
            TableColumn::number("value"),
            TableColumn::number("gradient norm"),
            TableColumn::text("ends at"),
            TableColumn::text("why"),
            TableColumn::text("what is there"),
        ];
        if rates {
            columns
                .extend([TableColumn::number("rate predicted"), TableColumn::number("rate seen")]);
        }
        let mut table = PageTable::new(columns);
        for run in &self.runs {
            let found = &run.outcome;
            let mut cells: Vec<Cell> = vec![
                run.optimizer.into(),
                run.rate.map_or("–".into(), number).into(),
                found.iterations.into(),
                found.evaluations.gradients.into(),
                found.value.into(),
                found.gradient_norm.into(),
                place(&found.x).into(),
                found.reason.to_string().into(),
                run.point.as_str().into(),
            ];
            if rates {
                cells.extend([
                    shown_rate(run.predicted_rate).into(),
                    shown_rate(run.seen_rate).into(),
                ]);
            }
            table = table.row(cells);
        }
        Page::new(format!("Optimisers on {}", self.surface))
            .subtitle(self.formula)
            .section("Paths", |s| {
                s.text(self.about()).chart(&contour).note(
                    "Rings mark the start, large dots the ends, crosses known minima and saddles. \
                     The stronger the colour, the lower.",
                )
            })
            .section("Values", |s| s.chart(&line))
            .section("Runs", |s| s.table(&table))
            .footer("gradus lab optimize")
    }
}
