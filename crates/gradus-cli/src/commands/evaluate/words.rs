//! Vectors of words against sets made by people.

use super::samples::between;
use crate::output::{Context, Outcome, Table, grouped};
use gradus_app::embed::Embedding;
use gradus_app::evaluate::WordsAnswer;
use gradus_file::output::FileKind;
use std::path::Path;

/// The vectors of a file of another program; `None` of a model of gradus.
pub fn vectors(path: &Path, context: Context) -> Outcome<Option<Embedding>> {
    match FileKind::of(path)? {
        Some(FileKind::Text | FileKind::Compressed | FileKind::Binary) => {
            Ok(Some(context.reading(|remarks| crate::app().open_vectors(path, remarks))?))
        }
        _ => Ok(None),
    }
}

pub fn show(found: &WordsAnswer, context: Context) -> Outcome {
    match found {
        WordsAnswer::Similarity(found) => {
            let mut table = Table::new(&["", ">score", "95 %"]);
            let interval = found
                .interval
                .map_or(String::new(), |(low, high)| format!("{low:.3} to {high:.3}"));
            table.row([
                "Spearman's rank correlation".to_owned(),
                format!("{:.4}", found.spearman),
                interval,
            ]);
            context.say(table)?;
            let (compared, pairs) = (grouped(found.compared), grouped(found.pairs));
            context.say(format_args!(
                "on {compared} of {pairs} pairs, both of whose words the model knows"
            ))?;
            if !found.unknown.is_empty() {
                let more = if found.unknown.len() == 20 { ", …" } else { "" };
                context.remark(format_args!("unknown: {}{more}", found.unknown.join(", ")));
            }
            Ok(())
        }
        WordsAnswer::Analogies(found) => {
            let mut table =
                Table::new(&["section", ">right", ">asked", ">of", ">accuracy", "95 %"]);
            for section in found.sections.iter().chain([&found.total]) {
                let (share, interval) = section
                    .accuracy
                    .as_ref()
                    .map_or((String::new(), String::new()), |(share, interval)| {
                        (format!("{:.1} %", 100.0 * share), between(interval))
                    });
                table.row([
                    section.section.clone(),
                    grouped(section.right as usize),
                    grouped(section.asked as usize),
                    grouped(section.analogies as usize),
                    share,
                    interval,
                ]);
            }
            context.say(table)?;
            context.say(
                "asked: analogies of which the model knows all four words; intervals by Wilson",
            )
        }
    }
}
