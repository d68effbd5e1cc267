//! Planted data: data sets made from a known truth, to try, test and time models on.
//!
//! Each `…Spec` is a plain struct with defaults and setters; `make(seed)` returns the data together
//! with the truth it was made from. The same spec and seed give the same data on every machine and
//! any number of threads.
//!
//! | spec | what it makes |
//! |---|---|
//! | [`RatingsSpec`] | a catalogue of films, its users, and what they thought of them |

mod choose;
mod ratings;
mod titles;

pub use ratings::{ItemIds, MadeRatings, RatingsBlock, RatingsMaker, RatingsSpec, RatingsTruth};
pub use titles::genre_name;

use crate::{Error, Result};

/// A setter for each field.
macro_rules! setters {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(
            #[doc = concat!("Sets [`", stringify!($name), "`](Self#structfield.", stringify!($name), ").")]
            pub fn $name(mut self, $name: $type) -> Self {
                self.$name = $name;
                self
            }
        )*
    };
}
use setters;

/// Refuses a number that is not finite or below `low`.
fn at_least(name: &str, value: f64, low: f64) -> Result<()> {
    if value >= low && value.is_finite() {
        return Ok(());
    }
    Err(Error::parameter(name, value, format!("must be finite and at least {low}")))
}

/// Refuses a number outside `low..=high`.
fn within(name: &str, value: f64, low: f64, high: f64) -> Result<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Error::parameter(name, value, format!("must be between {low} and {high}")))
}
