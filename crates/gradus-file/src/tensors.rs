//! Tensors of plain safetensors files: weights that another program has learned.

use gradus_base::{Error, Result};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::path::Path;

/// A tensor by its name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTensor {
    /// The name.
    pub name: String,
    /// The shape.
    pub shape: Vec<usize>,
    /// The numbers, row by row.
    pub values: Vec<f32>,
}

/// Reads the tensors of floating point numbers (of 16, 32 or 64 bits) of a safetensors file; the names of others are given as
/// well.
///
/// # Errors
/// If the file cannot be read, or is no safetensors file.
pub fn read_tensors(path: &Path) -> Result<(Vec<NamedTensor>, Vec<String>)> {
    let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
    let all = SafeTensors::deserialize(&bytes).map_err(|error| {
        let hint = if bytes.starts_with(b"PK") {
            "; a file of torch.save becomes one by safetensors.torch.save_file(model.state_dict(), FILE)"
        } else {
            ""
        };
        Error::format(path, format!("is no safetensors file: {error}{hint}"))
    })?;
    let (mut found, mut others) = (Vec::new(), Vec::new());
    let mut names: Vec<&str> = all.names();
    names.sort_unstable();
    for name in names {
        let Ok(view) = all.tensor(name) else { continue };
        match numbers(&view) {
            Some(values) => {
                found.push(NamedTensor {
                    name: name.to_owned(),
                    shape: view.shape().to_vec(),
                    values,
                });
            }
            None => others.push(name.to_owned()),
        }
    }
    Ok((found, others))
}

/// The numbers of a tensor, if they are of a type of floating point numbers.
fn numbers(view: &TensorView<'_>) -> Option<Vec<f32>> {
    let bytes = view.data();
    let pair = |two: &[u8; 2]| u16::from_le_bytes(*two);
    Some(match view.dtype() {
        Dtype::F32 => bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four)).collect(),
        Dtype::F64 => {
            bytes.as_chunks().0.iter().map(|eight| f64::from_le_bytes(*eight) as f32).collect()
        }
        Dtype::BF16 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|two| f32::from_bits(u32::from(pair(two)) << 16))
            .collect(),
        Dtype::F16 => bytes.as_chunks().0.iter().map(|two| half(pair(two))).collect(),
        _ => return None,
    })
}

/// A number of half precision.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2.0f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1.0 + fraction / 1024.0) * 2.0f32.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_precision_are_read() {
        assert_eq!(
            [0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00].map(half),
            [1.0, -2.0, 5.960_464_5e-8, 65504.0, f32::INFINITY]
        );
        assert!(half(0x7e00).is_nan());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.safetensors");
        let bytes: [(&str, Dtype, Vec<u8>); 5] = [
            ("a", Dtype::F32, [1.5f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect()),
            ("b", Dtype::F64, [1.5f64, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect()),
            ("c", Dtype::BF16, [0x3fc0u16, 0xc000].iter().flat_map(|x| x.to_le_bytes()).collect()),
            ("d", Dtype::F16, [0x3e00u16, 0xc000].iter().flat_map(|x| x.to_le_bytes()).collect()),
            ("e", Dtype::I64, [7i64, 8].iter().flat_map(|x| x.to_le_bytes()).collect()),
        ];
        let views = bytes
            .iter()
            .map(|(name, dtype, data)| (*name, TensorView::new(*dtype, vec![2, 1], data).unwrap()));
        std::fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
        let (found, others) = read_tensors(&path).unwrap();
        assert_eq!(others, ["e"]);
        assert_eq!(found.len(), 4);
        for one in found {
            assert_eq!((one.values, one.shape), (vec![1.5, -2.0], vec![2, 1]), "{}", one.name);
        }
        std::fs::write(&path, b"PK\x03\x04 and so on").unwrap();
        let error = read_tensors(&path).unwrap_err().to_string();
        assert!(error.contains("no safetensors file") && error.contains("save_file"), "{error}");
    }
}
