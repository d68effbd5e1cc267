//! The picture: paths over level lines, and the values beside it.

use super::surface::Surface;
use super::{Run, place, shown_rate};
use gradus::optim::diagnose::Convexity;
use gradus_report::{
    Background, Beside, Cell, Chart as _, Contour, Line, Page, PageTable, TableColumn, number,
};

/// Below this the rest is rounding.
const SMALLEST: f64 = 1e-16;
/// Above this share of the start a run is lost, and would flatten the rest.
const LARGEST: f64 = 1e3;

pub(super) struct Picture<'a> {
    surface: &'a Surface,
    runs: &'a [Run],
    contour: Contour,
    line: Line,
}

pub(super) fn picture<'a>(surface: &'a Surface, start: [f64; 2], runs: &'a [Run]) -> Picture<'a> {
    // A start outside what is usually shown widens it.
    let wide = |(low, high): (f64, f64), at: f64| {
        let room = 0.08 * (high - low).max((at - low).abs()).max((at - high).abs());
        (low.min(at - room), high.max(at + room))
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
    for run in runs {
        let points = run.outcome.trace.points.iter();
        contour = contour.path(run.name, points.map(|x| (x[0], x[1])));
        let mut values = Vec::new();
        for step in &run.outcome.trace.steps {
            let above = step.value - surface.least;
            values.push((step.iteration as f64, above.clamp(SMALLEST, top)));
            if above <= SMALLEST || above >= top {
                break;
            }
        }
        line = line.series(run.name, values);
    }
    Picture { surface, runs, contour, line }
}

impl Picture<'_> {
    pub(super) fn svg(&self) -> String {
        let title = format!("Paths of optimisers on {}", self.surface.name);
        let both = Beside::new(&self.contour, &self.line).share(0.56).title(title);
        both.draw(1200.0).standalone(Background::Theme)
    }

    pub(super) fn html(&self, convexity: &Convexity) -> String {
        let rates = self.runs.iter().any(|run| run.predicted.is_some());
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
        for run in self.runs {
            let found = &run.outcome;
            let mut cells: Vec<Cell> = vec![
                run.name.into(),
                run.rule.map_or("–".into(), |(_, rate)| number(rate)).into(),
                found.iterations.into(),
                found.evaluations.gradients.into(),
                found.value.into(),
                found.gradient_norm.into(),
                place(&found.x).into(),
                found.reason.to_string().into(),
                run.point.to_string().into(),
            ];
            if rates {
                cells.extend([shown_rate(run.predicted).into(), shown_rate(run.seen).into()]);
            }
            table = table.row(cells);
        }
        Page::new(format!("Optimisers on {}", self.surface.name))
            .subtitle(self.surface.formula)
            .section("Paths", |s| {
                s.text(self.surface.about(convexity)).chart(&self.contour).note(
                    "Rings mark the start, large dots the ends, crosses known minima and saddles. \
                     The stronger the colour, the lower.",
                )
            })
            .section("Values", |s| s.chart(&self.line))
            .section("Runs", |s| s.table(&table))
            .footer("gradus lab optimize")
            .to_html()
    }
}
