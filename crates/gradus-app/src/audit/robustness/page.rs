//! The page of an audit of robustness.

use super::{FallenRow, RobustnessAnswer};
use crate::lab::Drawn;
use gradus::audit::robustness::Share;
use gradus_base::text::grouped;
use gradus_data::ImageShape;
use gradus_report::{
    Background, Cell, Chart as _, Line, Page, PageTable, Pictures, TableColumn, number,
};
use serde_json::Value;

/// Rows that fell which the page lists.
const LISTED: usize = 40;
/// Images that fell which the page shows.
const SHOWN: usize = 16;

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn text(label: &Value) -> String {
    label.as_str().map_or_else(|| label.to_string(), str::to_owned)
}

impl RobustnessAnswer {
    /// How to read the numbers.
    pub fn about(&self) -> &'static str {
        if self.found.exact {
            "The model is linear, and the distance of each row to the nearest other decision is computed exactly: no change within the \
             radius reverses more decisions."
        } else {
            "Robust accuracy is the share of rows whose decision is right and that no attack reversed. It is an upper bound: a stronger \
             attack could reverse more. At radii other than that of the audit the first attack runs alone."
        }
    }

    fn curve(&self) -> Line {
        let points = |of: fn(&Share) -> f64| {
            self.found
                .curve
                .iter()
                .map(move |point| (point.eps, of(&point.robust)))
                .collect::<Vec<_>>()
        };
        let mut chart = Line::new()
            .title("Robust accuracy by the radius of perturbations")
            .x_label(format!("radius in {}", self.found.norm))
            .y_label("robust accuracy")
            .series("robust accuracy", points(|share| share.value))
            .faint("lower end, 95 %", points(|share| share.interval.low))
            .faint("upper end, 95 %", points(|share| share.interval.high))
            .marker(self.found.eps, "radius of the audit")
            .markers();
        if let Some(certified) = &self.certified {
            let points = certified.curve.iter().map(|(radius, share)| (*radius, share.value));
            chart = chart.series("certified in l2 by smoothing", points);
        }
        chart
    }

    fn attacks(&self) -> PageTable {
        let mut table = PageTable::new(vec![
            TableColumn::text("attack"),
            TableColumn::number("rows attacked"),
            TableColumn::number("fell"),
            TableColumn::number("evaluations"),
            TableColumn::number("seconds").decimals(2),
        ]);
        for attack in &self.found.attacks {
            table = table.row(vec![
                Cell::from(attack.attack.name()),
                attack.tried.into(),
                attack.fell.into(),
                (attack.queries as f64).into(),
                attack.seconds.into(),
            ]);
        }
        table
    }

    fn fallen(&self) -> PageTable {
        let mut table = PageTable::new(vec![
            TableColumn::number("row"),
            TableColumn::text("class"),
            TableColumn::text("becomes"),
            TableColumn::number("distance"),
            TableColumn::text("by"),
            TableColumn::text("largest changes"),
        ]);
        for row in self.examples.iter().take(LISTED) {
            let shown = row.changes.iter().take(4).map(|change| {
                format!("{} {} → {}", change.feature, number(change.from), number(change.to))
            });
            table = table.row(vec![
                row.row.into(),
                text(&row.was).into(),
                text(&row.becomes).into(),
                row.distance.into(),
                row.by.clone().into(),
                shown.collect::<Vec<_>>().join(", ").into(),
            ]);
        }
        table
    }

    fn pictures(&self, shape: ImageShape) -> Pictures {
        let pixels = |row: &FallenRow, changed: bool| -> Vec<f64> {
            let values = if changed { &row.changed } else { &row.features };
            values
                .chunks(shape.channels.max(1))
                .map(|pixel| pixel.iter().sum::<f64>() / pixel.len() as f64)
                .collect()
        };
        self.examples.iter().take(SHOWN).fold(
            Pictures::new().title("Images that fell, each beside its change"),
            |all, row| {
                all.picture(
                    format!("{} ({})", text(&row.was), row.row),
                    shape.width,
                    &pixels(row, false),
                )
                .picture(
                    format!("taken for {}", text(&row.becomes)),
                    shape.width,
                    &pixels(row, true),
                )
            },
        )
    }
}

impl Drawn for RobustnessAnswer {
    fn svg(&self) -> String {
        self.curve().draw(900.0).standalone(Background::Theme)
    }

    fn page(&self) -> Page {
        let found = &self.found;
        let between = |share: &Share| {
            format!("{} to {}", percent(share.interval.low), percent(share.interval.high))
        };
        let mut stats = vec![
            ("Accuracy".to_owned(), percent(found.accuracy.value), between(&found.accuracy)),
            ("Robust accuracy".to_owned(), percent(found.robust.value), between(&found.robust)),
            ("Radius".to_owned(), number(found.eps), format!("{}, in {}", found.norm, self.units)),
        ];
        if let Some(distance) = found.median_distance() {
            stats.push((
                "Median distance".to_owned(),
                number(distance),
                "to another decision".to_owned(),
            ));
        }
        let mut page = Page::new(format!("Robustness of {}", self.model))
            .subtitle(format!(
                "{} of {} rows; the model gives {}",
                grouped(found.rows.len()),
                grouped(self.count),
                found.access
            ))
            .stats(stats)
            .section("Over the radius", |s| s.text(self.about()).chart(self.curve()))
            .section("Attacks", |s| {
                let s = s.table(&self.attacks());
                found.notes.iter().fold(s, |s, note| s.note(note))
            });
        if let Some(shape) = self.image.filter(|_| !self.examples.is_empty()) {
            page = page.section("Images that fell", |s| s.chart(self.pictures(shape)));
        }
        if !self.examples.is_empty() {
            page = page.section("Rows that fell", |s| {
                s.table(&self.fallen()).note(format!(
                    "{} rows fell; those with the least change come first.",
                    grouped(self.examples.len())
                ))
            });
        }
        page.footer("gradus audit robustness")
    }
}
