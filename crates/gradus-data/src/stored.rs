//! Ids and sparse matrices in a model file.

use crate::{Csr, Ids, TextIds};
use gradus_base::Result;
use gradus_file::{Reader, Writer};

impl Ids {
    /// Adds the ids to a model file: one `i64` tensor, or the text as bytes with its offsets.
    pub fn write<'a>(&'a self, name: &str, file: &mut Writer<'a>) {
        match self {
            Self::Int(values) => file.tensor(&format!("{name}.int"), &[values.len()], values),
            Self::Text(values) => {
                let (text, offsets) = values.parts();
                file.tensor(&format!("{name}.text"), &[text.len()], text.as_bytes());
                file.tensor(&format!("{name}.offsets"), &[offsets.len()], offsets);
            }
        }
    }

    /// Reads ids as [`write`](Self::write) writes them.
    ///
    /// # Errors
    /// If the file has none of this name, or they are not sorted ids.
    pub fn read(name: &str, file: &mut Reader) -> Result<Self> {
        let ids = if file.has(&format!("{name}.int")) {
            Self::Int(file.vector(&format!("{name}.int"))?)
        } else {
            let text = String::from_utf8(file.vector(&format!("{name}.text"))?)
                .map_err(|error| file.broken(format!("ids `{name}`: {error}")))?;
            let offsets = file.vector(&format!("{name}.offsets"))?;
            let ids = TextIds::from_parts(text, offsets);
            Self::Text(ids.map_err(|error| file.broken(format!("ids `{name}`: {error}")))?)
        };
        ids.from_sorted().map_err(|error| file.broken(format!("ids `{name}`: {error}")))
    }
}

impl Csr {
    /// Adds the matrix to a model file: row starts, column indices, values.
    pub fn write<'a>(&'a self, name: &str, file: &mut Writer<'a>) {
        let starts: Vec<u64> = self.indptr().iter().map(|&at| at as u64).collect();
        file.tensor_owned(&format!("{name}.indptr"), &[starts.len()], starts);
        file.tensor(&format!("{name}.indices"), &[self.nnz()], self.indices());
        file.tensor(&format!("{name}.values"), &[self.nnz()], self.values());
    }

    /// Reads a matrix of this shape as [`write`](Self::write) writes it.
    ///
    /// # Errors
    /// If the file has none of this name and shape, or one that is broken.
    pub fn read(name: &str, n_rows: usize, n_cols: usize, file: &mut Reader) -> Result<Self> {
        let starts: Vec<u64> = file.tensor(&format!("{name}.indptr"), &[n_rows + 1])?;
        let starts = starts.into_iter().map(|at| at as usize).collect();
        let indices: Vec<u32> = file.vector(&format!("{name}.indices"))?;
        let values = file.finite(&format!("{name}.values"), &[indices.len()])?;
        Self::new(n_cols, starts, indices, values)
            .map_err(|error| file.broken(format!("matrix `{name}`: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let text = Ids::Text(["a", "é", "漢"].into_iter().collect());
        let numbers = Ids::Int(vec![-4, 7]);
        let csr = Csr::new(2, vec![0, 1, 1, 3], vec![1, 0, 1], vec![5.0, -0.5, 2.0]).unwrap();
        let mut file = Writer::new("thing");
        text.write("users", &mut file);
        numbers.write("items", &mut file);
        csr.write("history", &mut file);
        file.to_bytes().unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut file = Reader::from_bytes(sample()).unwrap();
        let users = Ids::read("users", &mut file).unwrap();
        assert_eq!(users, Ids::Text(["a", "é", "漢"].into_iter().collect()));
        assert_eq!(Ids::read("items", &mut file).unwrap(), Ids::Int(vec![-4, 7]));
        let history = Csr::read("history", 3, 2, &mut file).unwrap();
        assert_eq!(history.row(2), (&[0, 1][..], &[-0.5, 2.0][..]));
        assert!(Csr::read("history", 2, 2, &mut file).is_err());
        assert!(Ids::read("nobody", &mut file).is_err());
    }

    #[test]
    fn a_flipped_byte_is_an_error_or_a_valid_file() {
        let good = sample();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x80;
            if let Ok(mut file) = Reader::from_bytes(bad) {
                let _ = Ids::read("users", &mut file);
                let _ = Csr::read("history", 3, 2, &mut file);
            }
        }
    }
}
