//! The page of an audit of fairness.

use super::{Audit, FairnessAnswer, Mitigation};
use gradus::audit::fairness::{DecisionAudit, FairnessCriterion, GroupRates, Rate, ValueAudit};
use gradus_base::text::grouped;
use gradus_report::{Curves, Forest, Line, Page, PageTable, Section, TableColumn, fixed, number};

/// The page of an audit: rates by group with intervals, ROC and calibration by group, the criteria, and what mitigation
/// would buy. `title` names the model and `data` the file.
pub fn page(answer: &FairnessAnswer, title: &str, data: &str) -> Page {
    let of = answer
        .favourable
        .as_ref()
        .map_or(String::new(), |name| format!("; the favourable decision is `{name}`"));
    let mut page = Page::new(format!("Fairness of {title}")).subtitle(format!(
        "model `{}`, {} rows of {data}{of}",
        answer.model,
        grouped(answer.count)
    ));
    let shown = answer.audits.iter().map(|audit| match audit {
        Audit::Decisions(audit) => (&audit.attribute, &audit.criteria),
        Audit::Values(audit) => (&audit.attribute, &audit.criteria),
    });
    for (attribute, criteria) in shown {
        let violated = criteria.iter().filter(|one| one.rejected == Some(true)).count();
        let all = criteria.iter().filter(|one| one.rejected.is_some()).count();
        let note = format!("by {attribute}");
        page = page.stats([("criteria violated", format!("{violated} of {all}"), note)]);
    }
    for audit in &answer.audits {
        page = match audit {
            Audit::Decisions(audit) => decisions(page, audit, answer),
            Audit::Values(audit) => values(page, audit),
        };
    }
    page.section("How to read it", |section| {
        section
            .text(
                "A criterion is violated where its test would find so large a difference in fewer than 5 % of samples (unless \
                 another level was asked for) if the criterion held. Not violated is not proof: the interval of the \
                 difference says how large it may be. Intervals of differences hold for all pairs of groups at once.",
            )
            .text(
                "Independence, separation and sufficiency exclude one another where base rates differ and predictions are \
                 not perfect: which of them matters is a question about the decision, and no figure answers it. \
                 `gradus lab fairness` shows it by example.",
            )
    })
    .footer("gradus audit fairness")
}

fn interval(rate: &Rate) -> String {
    if rate.value.is_nan() {
        return "–".to_owned();
    }
    format!("{} ({}–{})", fixed(rate.value, 3), fixed(rate.low, 3), fixed(rate.high, 3))
}

pub(super) fn criteria_table(criteria: &[FairnessCriterion]) -> PageTable {
    let columns = [
        TableColumn::text("criterion"),
        TableColumn::text("kind"),
        TableColumn::number("difference"),
        TableColumn::text("interval"),
        TableColumn::number("ratio"),
        TableColumn::number("p"),
        TableColumn::text("verdict"),
    ];
    let mut table = PageTable::new(columns).caption("Criteria");
    for one in criteria {
        let gap = one.gap.map(|gap| (number(gap.difference), gap.interval, gap.ratio));
        let (difference, interval, ratio) = match gap {
            Some((difference, [low, high], ratio)) => (
                difference,
                format!("{} to {}", number(low), number(high)),
                ratio.map_or("–".to_owned(), |ratio| fixed(ratio, 3)),
            ),
            None => ("–".to_owned(), "–".to_owned(), "–".to_owned()),
        };
        let p = one.test.map_or("–".to_owned(), |test| number(test.p_value));
        let cells = [
            one.name.into(),
            one.family.name().into(),
            difference.into(),
            interval.into(),
            ratio.into(),
            p.into(),
            one.verdict().into(),
        ];
        table =
            if one.rejected == Some(true) { table.highlighted(cells) } else { table.row(cells) };
    }
    table
}

fn forest(name: &str, groups: &[GroupRates], rate: impl Fn(&GroupRates) -> Rate) -> Forest {
    let rows = groups.iter().map(|group| (group, rate(group))).filter(|(_, r)| !r.value.is_nan());
    Forest::new(rows.map(|(group, r)| (group.group.clone(), r.value, r.low, r.high)))
        .title(name)
        .decimals(3)
}

fn decisions(page: Page, audit: &DecisionAudit, answer: &FairnessAnswer) -> Page {
    let all = audit.groups.iter().chain([&audit.overall]);
    let columns = [
        TableColumn::text(audit.attribute.clone()),
        TableColumn::number("rows"),
        TableColumn::text("base rate"),
        TableColumn::text("selection rate"),
        TableColumn::text("true positive rate"),
        TableColumn::text("false positive rate"),
        TableColumn::text("precision"),
        TableColumn::text("accuracy"),
        TableColumn::number("AUC"),
    ];
    let mut table = PageTable::new(columns).caption("Rates by group, with intervals");
    for group in all {
        table = table.row([
            group.group.clone().into(),
            grouped(group.count).into(),
            interval(&group.base_rate).into(),
            interval(&group.selection_rate).into(),
            interval(&group.true_positive_rate).into(),
            interval(&group.false_positive_rate).into(),
            interval(&group.precision).into(),
            interval(&group.accuracy).into(),
            group.auc.map_or("–".to_owned(), |auc| fixed(auc, 3)).into(),
        ]);
    }
    let mut page = page.section(&format!("By {}", audit.attribute), |section| {
        let mut section = section.table(&criteria_table(&audit.criteria)).table(&table);
        for warning in &audit.warnings {
            section = section.note(warning);
        }
        section
            .columns(
                |s| s.chart(forest("Selection rate", &audit.groups, |g| g.selection_rate)),
                |s| s.chart(forest("Base rate", &audit.groups, |g| g.base_rate)),
            )
            .columns(
                |s| s.chart(forest("True positive rate", &audit.groups, |g| g.true_positive_rate)),
                |s| {
                    s.chart(forest("False positive rate", &audit.groups, |g| g.false_positive_rate))
                },
            )
    });
    if audit.groups.iter().any(|group| !group.roc.is_empty()) {
        let title = format!("ROC and calibration by {}", audit.attribute);
        page = page.section(&title, |section| {
            section.columns(|s| s.chart(roc(audit)), |s| calibration(s, audit))
        });
    }
    let found: Vec<&Mitigation> =
        answer.mitigation.iter().filter(|m| m.attribute == audit.attribute).collect();
    if found.is_empty() {
        return page;
    }
    let title = format!("What thresholds for each group of {} would buy", audit.attribute);
    page.section(&title, |section| bought(section, &found))
}

fn roc(audit: &DecisionAudit) -> Curves {
    let mut curves = Curves::roc().title("ROC");
    for group in audit.groups.iter().filter(|group| !group.roc.is_empty()) {
        let points =
            group.roc.iter().map(|point| (point.false_positive_rate, point.true_positive_rate));
        curves = curves.curve(group.group.clone(), points, group.auc.unwrap_or(f64::NAN));
    }
    curves
}

fn calibration(section: Section, audit: &DecisionAudit) -> Section {
    let with = audit.groups.iter().filter_map(|group| Some((group, group.calibration.as_ref()?)));
    let mut line = Line::new()
        .title("Calibration: share against probability")
        .x_label("mean probability")
        .y_label("share of the favourable class")
        .faint("calibrated", [(0.0, 0.0), (1.0, 1.0)])
        .markers();
    let mut any = false;
    for (group, found) in with {
        any = true;
        line =
            line.series(group.group.clone(), found.bins.iter().map(|b| (b.predicted, b.observed)));
    }
    if any {
        section.chart(line)
    } else {
        section.note("The model has no probabilities, so that there is nothing to calibrate.")
    }
}

fn bought(section: Section, found: &[&Mitigation]) -> Section {
    let columns = [
        TableColumn::text("constraint"),
        TableColumn::number("accuracy now").decimals(4),
        TableColumn::number("difference now").decimals(4),
        TableColumn::number("accuracy then").decimals(4),
        TableColumn::number("difference then").decimals(4),
    ];
    let mut table = PageTable::new(columns);
    for one in found {
        table = table.row([
            one.constraint.replace('_', " ").into(),
            one.accuracy.into(),
            one.difference.into(),
            one.accuracy_after.into(),
            one.difference_after.into(),
        ]);
    }
    let section = section
        .table(&table)
        .note(
            "Thresholds are chosen on half of the rows and evaluated on the other half, twice; figures are expectations over \
             the coins between thresholds. `gradus audit thresholds` puts them around this \
             model, `gradus fit fairthresholds` fits such a model, and `gradus fit fairreduction` one that does not need the group \
             to predict. The curves are the greatest accuracy of thresholds at each bound on the difference, on all rows; the \
             single point is the model as it is.",
        );
    frontiers(section, found)
}

/// A chart for each constraint, two beside one another.
fn frontiers(section: Section, found: &[&Mitigation]) -> Section {
    let chart = |one: &Mitigation| {
        let points = one.frontier.points.iter().map(|point| (point.difference, point.accuracy));
        Line::new()
            .title(format!("Accuracy against disparity: {}", one.constraint.replace('_', " ")))
            .x_label("largest difference between groups")
            .y_label("accuracy")
            .series("thresholds for each group", points)
            .series("the model", [(one.difference, one.accuracy)])
            .markers()
    };
    found.chunks(2).fold(section, |section, pair| match *pair {
        [a, b] => section.columns(|s| s.chart(chart(a)), |s| s.chart(chart(b))),
        [a] => section.columns(|s| s.chart(chart(a)), |s| s),
        _ => section,
    })
}

fn values(page: Page, audit: &ValueAudit) -> Page {
    let columns = [
        TableColumn::text(audit.attribute.clone()),
        TableColumn::number("rows"),
        TableColumn::number("mean truth"),
        TableColumn::number("mean prediction"),
        TableColumn::number("mean residual"),
        TableColumn::number("mean absolute error"),
        TableColumn::number("root mean squared error"),
    ];
    let mut table = PageTable::new(columns).caption("Figures by group");
    for group in audit.groups.iter().chain([&audit.overall]) {
        table = table.row([
            group.group.clone().into(),
            grouped(group.count).into(),
            group.mean_truth.value.into(),
            group.mean_prediction.value.into(),
            group.mean_residual.value.into(),
            group.mean_absolute_error.value.into(),
            group.root_mean_squared_error.into(),
        ]);
    }
    let chart = |title: &str, rate: fn(&gradus::audit::fairness::GroupValues) -> Rate| {
        let rows = audit.groups.iter().map(|group| (group, rate(group)));
        Forest::new(rows.map(|(group, r)| (group.group.clone(), r.value, r.low, r.high)))
            .title(title)
    };
    page.section(&format!("By {}", audit.attribute), |section| {
        let mut section = section.table(&criteria_table(&audit.criteria)).table(&table);
        for warning in &audit.warnings {
            section = section.note(warning);
        }
        section.columns(
            |s| s.chart(chart("Mean residual", |g| g.mean_residual).reference(0.0)),
            |s| s.chart(chart("Mean absolute error", |g| g.mean_absolute_error)),
        )
    })
}
