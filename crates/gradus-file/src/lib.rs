//! Files: how every output is written, how files are packed, and the model file.
//!
//! | module | what lives there |
//! |---|---|
//! | [`model`] | the model file: [`Reader`] and [`Writer`] |
//! | [`output`] | writing files: all or nothing, and nothing that should stay |
//! | [`packing`] | gzip and Zstandard |
//! | [`tensors`] | tensors of plain safetensors files |

pub mod model;
pub mod output;
pub mod packing;
pub mod tensors;

pub use model::{Element, FORMAT, Reader, Writer, checksum};
