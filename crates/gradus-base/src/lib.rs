//! The foundation of every crate of gradus: errors, seeds and the parallel loop.
//!
//! | module | what lives there |
//! |---|---|
//! | [`error`] | the one error type: argument, value, rule |
//! | [`text`] | text from data, made fit to show |
//! | [`random`] | seeds, and a stream of random numbers for each purpose and row |
//! | [`parallel`] | work in pieces, on the threads of the pool |
//! | [`memory`] | an allocator for the large matrices of a command or a package |

pub mod error;
pub mod memory;
pub mod parallel;
pub mod random;
pub mod text;

pub use error::{Error, Result};
