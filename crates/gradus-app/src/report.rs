//! The page of a model.

use crate::evaluate::words::{self, WordsAnswer};
use crate::predict::text_column;
use gradus::page::{
    AnalogySection, Tested, TestedAnalogies, any_page, clusters_page, generative_page, latent_page,
    page, samples_page, topics_page, words_page,
};
use gradus::text::{Documents, DocumentsFile};
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::dataset::{KindOf, RatingsFile, Remarks};
use gradus_core::estimator::AnyFitted;
use gradus_data::Samples;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The parts of the page besides the fit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReportRequest {
    /// The title of the page.
    pub title: String,
    /// Data the model has not seen, to show predictions against; analogies, of vectors of words.
    #[serde(default)]
    pub data: Option<PathBuf>,
    /// The reading options of the data; of a model of features its table alone.
    #[serde(default)]
    pub options: RatingsFile,
    /// The columns that hold the truth, for a model of features; as in training by default.
    #[serde(default)]
    pub target: Vec<String>,
}

/// The columns that hold the truth.
///
/// # Errors
/// If there are more or fewer of them than the model predicts.
pub(crate) fn target<'a>(given: &'a [String], names: &'a [String]) -> Result<&'a [String]> {
    if given.is_empty() || given.len() == names.len() {
        return Ok(if given.is_empty() { names } else { given });
    }
    let (given, names) = (given.join(","), names.join(","));
    Err(Error::data(format!("option `target` = {given}: the model predicts {names}")))
}

/// The page of a model, as HTML.
///
/// # Errors
/// If the data cannot be read, or the model cannot be tested on it.
pub fn report(
    fitted: &AnyFitted,
    request: &ReportRequest,
    remarks: &mut Remarks<'_>,
) -> Result<String> {
    let source = request.data.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    if fitted.model.recommend().is_some() {
        let tested = match &request.data {
            Some(path) => {
                let (data, has_values) = request.options.interactions(path, remarks)?;
                let tested = Tested::new(fitted, &source, &data, has_values)?;
                if tested.is_training() {
                    remarks.push(format!(
                        "caution: {} of the {} ratings of {source} are in the training data",
                        grouped(tested.in_training.unwrap_or_default()),
                        grouped(tested.count)
                    ));
                }
                Some(tested)
            }
            None => None,
        };
        return Ok(page(fitted, &request.title, tested.as_ref()).to_html());
    }
    let Some(path) = &request.data else {
        return Ok(any_page(fitted, &request.title).to_html());
    };
    if let Some(model) = fitted.model.topics() {
        let mut options = DocumentsFile {
            time_column: request.options.time_column.clone(),
            table: request.options.table.clone(),
            ..DocumentsFile::default()
        };
        if let Some(transformer) = fitted.model.transformer() {
            let kind = KindOf::<Documents>::new();
            options.text = text_column(transformer.inputs(), &kind, path);
        }
        let documents = options.read(path, remarks)?;
        let documents = Some((source.as_str(), &documents));
        return Ok(topics_page(fitted, model, &request.title, documents)?.to_html());
    }
    if let Some(model) = fitted.model.embedding() {
        let WordsAnswer::Analogies(found) = words::evaluate(model, path)? else {
            let reason = "the page shows analogies, and these are pairs of words: `gradus evaluate` compares with them";
            return Err(Error::format(path, reason));
        };
        let sections =
            found.sections.into_iter().chain([found.total]).map(|section| AnalogySection {
                name: section.section,
                right: section.right,
                asked: section.asked,
                accuracy: section.accuracy.map(|(share, within)| (share, within.low, within.high)),
            });
        let tested = TestedAnalogies { source, sections: sections.collect() };
        return Ok(words_page(fitted, model, &request.title, Some(&tested))?.to_html());
    }
    // A model that draws samples tells what they are by drawing none.
    let generator = fitted.model.generator().filter(|model| model.progress().is_some());
    let none = generator.map(|model| model.generate(0, 0)).transpose()?;
    let drawn = none.as_deref().and_then(|none| none.downcast_ref::<Samples>());
    let of_samples = fitted.model.transformer().map(|model| model.inputs());
    let of_samples = of_samples.or_else(|| drawn.map(Samples::inputs));
    let of_samples = of_samples.or_else(|| fitted.model.clusterer().map(|model| model.inputs()));
    if let (Some(inputs), Err(_)) = (of_samples, fitted.predictor()) {
        let table = &request.options.table;
        let inputs = (inputs, request.target.as_slice());
        // A column to colour samples by may hold words or numbers.
        let samples = match table.samples_for(path, inputs, !request.target.is_empty(), remarks) {
            Err(_) if !request.target.is_empty() => table.samples_for(path, inputs, false, remarks),
            found => found,
        }?;
        let samples = Some((source.as_str(), &samples));
        let page = generative_page(fitted, &request.title, samples)
            .or_else(|| latent_page(fitted, &request.title, samples))
            .or_else(|| clusters_page(fitted, &request.title, samples));
        return match page {
            Some(page) => Ok(page?.to_html()),
            None => Ok(any_page(fitted, &request.title).to_html()),
        };
    }
    let model = fitted.predictor()?;
    let target = target(&request.target, model.outputs().names())?;
    let classes = model.outputs().labels().is_some();
    let inputs = (model.inputs(), target);
    let samples = request.options.table.samples_for(path, inputs, classes, remarks)?;
    let tested = Some((source.as_str(), &samples));
    Ok(samples_page(fitted, &request.title, tested)?.to_html())
}
