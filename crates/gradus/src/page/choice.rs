//! The page of a choice of the number of clusters: all criteria in one picture.

use super::shown;
use gradus_report::{Cell, Line, Page, PageTable, Section, TableColumn, number};
use gradus_select::search::{ClusterCandidate, ClustersFound, Criterion};

/// All criteria over the candidates, with what each of them chooses.
pub fn clusters_choice_page(
    found: &ClustersFound,
    varied: &[String],
    title: &str,
    data: &str,
) -> Page {
    let best = &found.candidates[found.best];
    let stats = [
        (varied.join(", "), value(best, varied), format!("by {}", found.criterion.name())),
        ("Candidates".into(), number(found.candidates.len() as f64), String::new()),
    ];
    Page::new(title)
        .subtitle(data)
        .stats(stats)
        .section("Criteria", |section| {
            let section = section.text(
                "Each criterion asks another question, and they need not agree. The vertical line is what the criterion \
                 chooses. Silhouette: are samples nearer to their own cluster than to the next one? BIC and AIC: is the \
                 likelihood worth its parameters? Gap: are clusters tighter than in data without any? Stability: do fits to \
                 halves of the data put samples together alike?",
            );
            charts(section, found)
        })
        .section("Figures", |section| {
            let section = section.table(&table(found, varied));
            found.notes.iter().fold(section, |section, note| section.note(note))
        })
        .footer(format!("gradus {}", env!("CARGO_PKG_VERSION")))
}

fn value(candidate: &ClusterCandidate, varied: &[String]) -> String {
    let of = |name: &String| candidate.params.get(name).map(shown).unwrap_or_default();
    varied.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// Two charts beside each other, as far as they go.
fn charts(section: Section, found: &ClustersFound) -> Section {
    let charts: Vec<Line> =
        found.choices.iter().map(|&(criterion, at)| chart(found, criterion, at)).collect();
    charts.chunks(2).fold(section, |section, pair| match pair {
        [left, right] => {
            let (left, right) = (left.clone(), right.clone());
            section.columns(|column| column.chart(left), |column| column.chart(right))
        }
        [one] => section.chart(one.clone()),
        _ => section,
    })
}

fn chart(found: &ClustersFound, criterion: Criterion, chosen: usize) -> Line {
    let points = |of: &dyn Fn(f64, f64) -> f64| -> Vec<(f64, f64)> {
        let mut points: Vec<(f64, f64)> = found
            .candidates
            .iter()
            .filter_map(|candidate| {
                let measured = candidate.measure(criterion)?;
                Some((candidate.clusters as f64, of(measured.value, measured.error)))
            })
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let better = if criterion.higher_is_better() { "higher" } else { "lower" };
    let line = Line::new()
        .title(format!("{} ({better} is better)", criterion.name()))
        .series(criterion.name(), points(&|value, _| value))
        .markers()
        .x_label("clusters")
        .y_label(criterion.name())
        .marker(found.candidates[chosen].clusters as f64, "chosen");
    match criterion {
        Criterion::Gap | Criterion::Stability => line
            .faint("one standard error above", points(&|value, error| value + error))
            .faint("one standard error below", points(&|value, error| value - error)),
        _ => line,
    }
}

fn table(found: &ClustersFound, varied: &[String]) -> PageTable {
    let mut columns: Vec<TableColumn> = varied.iter().map(TableColumn::text).collect();
    columns.push(TableColumn::number("clusters").decimals(0));
    let of_criteria = found.choices.iter().map(|(one, _)| TableColumn::number(one.name()));
    columns.extend(of_criteria.map(|column| column.decimals(4)));
    found.candidates.iter().enumerate().fold(PageTable::new(columns), |table, (at, candidate)| {
        let of = |name: &String| candidate.params.get(name).map(shown).unwrap_or_default().into();
        let mut cells: Vec<Cell> = varied.iter().map(of).collect();
        cells.push(candidate.clusters.into());
        for (criterion, _) in &found.choices {
            let measured = candidate.measure(*criterion);
            cells.push(measured.map_or("–".into(), |measured| measured.value.into()));
        }
        if at == found.best { table.highlighted(cells) } else { table.row(cells) }
    })
}
