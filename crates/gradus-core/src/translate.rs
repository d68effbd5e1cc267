//! Models that make one text of another.

use gradus_base::Result;

/// A model that translates: it makes a text of another one.
pub trait Translate: Send + Sync {
    /// The translation of each text.
    ///
    /// `beams` is the number of unfinished translations that are looked at side by side: 1 always takes the most probable next
    /// token, more find more probable translations and take as many times as long.
    ///
    /// # Errors
    /// If a text is longer than the model takes, or the number of beams is not possible.
    fn translate(&self, texts: &[&str], beams: usize) -> Result<Vec<String>>;
}
