//! Draws new data from a model, or goes on with a text.

use gradus_base::{Error, Result};
use gradus_core::dataset::Dataset;
use gradus_core::density::Sampling;
use gradus_core::estimator::AnyFitted;
use serde::{Deserialize, Serialize};

/// A text to go on with, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContinueRequest {
    /// How the text begins.
    pub prompt: String,
    /// The most tokens to draw.
    pub number: usize,
    /// Logits are divided by it: 1 draws with the probabilities of the model, 0 takes the most probable token.
    pub temperature: f64,
    /// Only the so many most probable tokens are drawn; 0 for all.
    pub top_k: usize,
    /// Only the most probable tokens that together have this probability are drawn.
    pub top_p: f64,
    /// The seed.
    pub seed: u64,
}

impl Default for ContinueRequest {
    fn default() -> Self {
        let Sampling { temperature, top_k, top_p, seed } = Sampling::default();
        Self { prompt: String::new(), number: 200, temperature, top_k, top_p, seed }
    }
}

/// Draws `number` units of the kind of data that the model learned from.
///
/// # Errors
/// If the model cannot generate; the message says what it can do instead.
pub fn generate(fitted: &AnyFitted, number: usize, seed: u64) -> Result<Box<dyn Dataset>> {
    fitted.generator()?.generate(number, seed)
}

/// Goes on with a text; `take` gets the pieces of what comes after the prompt as they are drawn, in whole characters, and says
/// whether to go on.
///
/// # Errors
/// If the model cannot go on with texts, or a number is out of its range.
pub fn continue_text(
    fitted: &AnyFitted,
    request: &ContinueRequest,
    take: &mut dyn FnMut(&str) -> bool,
) -> Result<()> {
    let ContinueRequest { ref prompt, number, temperature, top_k, top_p, seed } = *request;
    let model = fitted.generator()?.continuation().ok_or_else(|| {
        Error::data(format!("a prompt is for models of language, and `{}` is none", fitted.kind))
    })?;
    let sampling = Sampling { temperature, top_k, top_p, seed };
    let mut bytes: Vec<u8> = Vec::new();
    let mut goes_on = true;
    model.continue_text(prompt, number, &sampling, &mut |more| {
        bytes.extend_from_slice(more);
        let text = whole_characters(&mut bytes);
        goes_on = text.is_empty() || take(&text);
        goes_on
    })?;
    if goes_on && !bytes.is_empty() {
        take(&String::from_utf8_lossy(&bytes));
    }
    Ok(())
}

/// Takes whole characters off the front of some bytes. A character whose last bytes are still to come stays; bytes that are no
/// text are replaced.
fn whole_characters(bytes: &mut Vec<u8>) -> String {
    let mut text = String::new();
    let mut done = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        done += chunk.valid().len();
        let rest = chunk.invalid();
        // What ends too early may become a character.
        let is_open = done + rest.len() == bytes.len()
            && std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
        if !rest.is_empty() && !is_open {
            text.push(char::REPLACEMENT_CHARACTER);
            done += rest.len();
        }
    }
    bytes.drain(..done);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_passed_on_whole() {
        let text = "aé🦀\u{fffd}b";
        let input = b"a\xc3\xa9\xf0\x9f\xa6\x80\xffb\xe2\x82";
        let (mut bytes, mut found) = (Vec::new(), Vec::new());
        for &byte in input {
            bytes.push(byte);
            found.push(whole_characters(&mut bytes));
        }
        assert_eq!(found.concat(), text);
        assert_eq!(found[..4], ["a", "", "é", ""]);
        // The last character never ended.
        assert_eq!(bytes, b"\xe2\x82");
    }
}
