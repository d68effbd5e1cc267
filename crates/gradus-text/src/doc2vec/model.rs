//! The fitted model of paragraph vectors.

use super::infer::{Draws, Inference, Workspace};
use crate::documents::Documents;
use crate::text_input;
use gradus_base::text::grouped;
use gradus_base::{Result, parallel};
use gradus_core::dataset::Dataset;
use gradus_core::estimator::Model;
use gradus_core::transform::Transform;
use gradus_data::{Csr, Dense, Inputs, Matrix, Vectorizer};
use gradus_file::{Reader, Writer};
use gradus_kernel::Rows;

/// Documents that are worked on at a time.
const ROWS: usize = 64;

/// How documents become vectors: what [`Doc2Vec`](crate::Doc2Vec) learns.
///
/// It takes [`Documents`], or the rows of a table with a column of text of the name in training.
#[derive(Clone, Debug, PartialEq)]
pub struct ParagraphVectors {
    inputs: Inputs,
    vectorizer: Vectorizer,
    /// How often each word is there in training, in the ascending order of the words.
    counts: Vec<u64>,
    /// The output vectors of the words.
    vectors: Rows,
    inference: Inference,
}

impl ParagraphVectors {
    pub(super) fn new(
        name: &str,
        vectorizer: Vectorizer,
        counts: Vec<u64>,
        k: usize,
        values: &[f32],
        inference: Inference,
    ) -> Result<Self> {
        let mut vectors = Rows::zeros(counts.len(), k);
        for (at, values) in values.chunks_exact(k).enumerate() {
            vectors.row_mut(at)[..k].copy_from_slice(values);
        }
        let inputs = text_input::inputs(name, &vectorizer);
        let model = Self { inputs, vectorizer, counts, vectors, inference };
        // Draws by these counts exist.
        Draws::new(&model.inference, &model.counts)?;
        Ok(model)
    }

    /// Number of coordinates of a vector.
    pub fn dimension(&self) -> usize {
        self.vectors.k()
    }

    /// The vectors of documents of which words are counted.
    fn of_counts(&self, counts: &Csr<f64>) -> Result<Dense<f64>> {
        let draws = Draws::new(&self.inference, &self.counts)?;
        let (k, stride) = (self.dimension(), self.vectors.stride());
        let of_rows = |work: &mut Workspace, rows: std::ops::Range<usize>| {
            let (mut out, mut x) = (Vec::with_capacity(rows.len() * k), vec![0f32; stride]);
            for row in rows {
                draws.find(counts.row(row), &self.vectors, work, &mut x);
                out.extend(x[..k].iter().map(|&x| f64::from(x)));
            }
            out
        };
        let blocks = parallel::blocks(counts.n_rows(), ROWS);
        let blocks = parallel::map_with(blocks, Workspace::default, of_rows);
        Dense::new(counts.n_rows(), k, blocks.concat())
    }
}

impl Transform for ParagraphVectors {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn output_names(&self) -> Vec<String> {
        (0..self.dimension()).map(|at| format!("doc2vec_{at}")).collect()
    }

    /// The vectors of rows of counts.
    fn transform(&self, features: &Matrix) -> Result<Dense<f64>> {
        self.inputs.check_width(features.n_cols())?;
        match features {
            Matrix::Sparse(counts) => self.of_counts(counts),
            Matrix::Dense(dense) => self.of_counts(&text_input::sparse(dense)?),
        }
    }

    fn transform_data(&self, data: &dyn Dataset) -> Result<Matrix> {
        let documents = data.of_kind::<Documents>()?;
        documents.need_texts("a model of texts")?;
        self.of_counts(&self.vectorizer.encode(&documents.texts())?).map(Matrix::Dense)
    }
}

impl Model for ParagraphVectors {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        let (n, k) = (self.counts.len(), self.dimension());
        self.inputs.write(file);
        file.tensor("counts", &[n], &self.counts);
        let values = (0..n).flat_map(|at| &self.vectors.row(at)[..k]).copied().collect();
        file.tensor_owned("vectors", &[n, k], values);
        file.set("inference", &self.inference);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let (inputs, vectorizer) = text_input::read(file)?;
        let n = vectorizer.n_features();
        let k = text_input::columns(file, "vectors", n)?;
        let mut vectors = Rows::zeros(n, k);
        let values = file.finite::<f32>("vectors", &[n, k])?;
        for (at, values) in values.chunks_exact(k).enumerate() {
            vectors.row_mut(at)[..k].copy_from_slice(values);
        }
        let counts = file.tensor("counts", &[n])?;
        let inference: Inference = file.get("inference")?;
        Draws::new(&inference, &counts).map_err(|error| file.broken(error))?;
        Ok(Self { inputs, vectorizer, counts, vectors, inference })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        vec![("words", grouped(self.counts.len())), ("dimension", self.dimension().to_string())]
    }

    fn transformer(&self) -> Option<&dyn Transform> {
        Some(self)
    }
}
