//! Laws that hold for several models at once.

mod extremes;
mod penalties;
mod separation;
mod units;
