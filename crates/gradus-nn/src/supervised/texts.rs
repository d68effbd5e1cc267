//! Documents as samples: their tokens are the features.

use gradus_base::{Error, Result};
use gradus_data::{Input, InputKind, Inputs, Matrix, Samples, Target, TokenInput};
use gradus_text::Documents;

/// How the text becomes tokens, of inputs that are one column of text.
pub fn tokens_of(inputs: &Inputs) -> Option<&TokenInput> {
    let Inputs::Columns(columns) = inputs else { return None };
    let [Input { kind: InputKind::Tokens(tokens), .. }] = &columns[..] else { return None };
    Some(tokens)
}

/// The tokens of documents, and their classes; of several classes the first.
///
/// # Errors
/// If the inputs are not one column of text, or the documents have no texts or no classes.
pub fn samples_of(model: &str, inputs: &Inputs, documents: &Documents) -> Result<Samples> {
    let tokens = tokens_of(inputs)
        .ok_or_else(|| Error::data("the data are documents, and samples are needed"))?;
    documents.need_texts(model)?;
    let classes = documents.document_classes().ok_or_else(|| {
        Error::data(format!(
            "{model}: the documents have no classes: name their column with option `label_column`, or begin lines with \
             __label__ and the class"
        ))
    })?;
    let target = Target::Classes { codes: classes.codes.clone(), labels: classes.labels.clone() };
    let features = Matrix::Sparse(tokens.encode(&documents.texts())?);
    Samples::new(features, target)?
        .with_inputs(inputs.clone())?
        .with_target_names(vec![classes.name.clone()])
}
