//! Laws that hold for several models at once.

mod baselines;
mod extremes;
mod penalties;
mod separation;
mod units;
