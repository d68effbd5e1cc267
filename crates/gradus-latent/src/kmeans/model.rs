//! The fitted k-means model: centres, and the clusters of new samples.

use super::data::{Data, scaled};
use super::search::Prepared;
use super::{KMeansMetric, lloyd};
use gradus_base::{Error, Result, parallel};
use gradus_core::cluster::Cluster;
use gradus_core::estimator::Model;
use gradus_data::{Dense, Inputs, Matrix};
use gradus_file::{Reader, Writer};
use std::borrow::Cow;

/// The centres of clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct KMeansModel {
    pub(super) inputs: Inputs,
    pub(super) metric: KMeansMetric,
    /// The centres in the units of the features.
    pub(super) centres: Dense<f64>,
    /// The scale by which features are divided before distances are taken.
    pub(super) scale: Option<Vec<f64>>,
    pub(super) sizes: Vec<u64>,
    pub(super) inertia: f64,
    /// Sum of the weights of the training samples.
    pub(super) weight: f64,
    /// The clusters of the training samples, right after a fit; not in a file.
    pub(super) training: Vec<u32>,
}

impl KMeansModel {
    /// The centres, clusters × features, in the units of the features. With the cosine metric these are directions.
    pub fn centres(&self) -> &Dense<f64> {
        &self.centres
    }

    /// The sum over the training samples of weight times squared distance to the centre (with the cosine metric: times
    /// one minus the cosine). Of standardised features, distances are in standard deviations.
    pub fn inertia(&self) -> f64 {
        self.inertia
    }

    /// Returns the scale that features were divided by before distances were taken, if they were standardised.
    pub fn scale(&self) -> Option<&[f64]> {
        self.scale.as_deref()
    }

    /// How distances are measured.
    pub fn metric(&self) -> KMeansMetric {
        self.metric
    }

    /// The weighted sum of squared distances (or of one minus the cosine) of samples to their nearest centres.
    ///
    /// # Errors
    /// As [`labels`](Cluster::labels), and if there is not a weight for each sample.
    pub fn cost(&self, features: &Matrix, weights: Option<&[f64]>) -> Result<f64> {
        self.check(features)?;
        if let Some(weights) = weights
            && weights.len() != features.n_rows()
        {
            return Err(Error::Shape {
                what: "weights".into(),
                expected: format!("{} (one for each sample)", features.n_rows()),
                got: weights.len().to_string(),
            });
        }
        let data = Data::new(self.prepared(features), weights, self.metric)?;
        Ok(lloyd::cost(&data, &self.scaled_centres()).1)
    }

    fn check(&self, features: &Matrix) -> Result<()> {
        self.inputs.check_width(features.n_cols())?;
        features.check_finite()
    }

    fn prepared<'a>(&self, features: &'a Matrix) -> Cow<'a, Matrix> {
        scaled(features, self.scale.as_deref(), self.metric)
    }

    /// The centres in the units in which distances are taken.
    pub(super) fn scaled_centres(&self) -> Cow<'_, [f64]> {
        match &self.scale {
            None => Cow::Borrowed(self.centres.values()),
            Some(scale) => {
                let by = scale.iter().cycle();
                Cow::Owned(self.centres.values().iter().zip(by).map(|(c, s)| c / s).collect())
            }
        }
    }
}

impl Cluster for KMeansModel {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn n_clusters(&self) -> usize {
        self.centres.n_rows()
    }

    fn sizes(&self) -> Vec<u64> {
        self.sizes.clone()
    }

    fn training_labels(&self) -> Option<Vec<Option<u32>>> {
        (!self.training.is_empty()).then(|| self.training.iter().copied().map(Some).collect())
    }

    fn labels(&self, features: &Matrix) -> Result<Vec<Option<u32>>> {
        self.check(features)?;
        let data = Data::new(self.prepared(features), None, self.metric)?;
        let centres = self.scaled_centres();
        Ok(lloyd::labels(&data, &centres).into_iter().map(Some).collect())
    }

    fn measured<'a>(&self, features: &'a Matrix) -> Cow<'a, Matrix> {
        self.prepared(features)
    }

    fn distances(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        self.check(features)?;
        let data = Data::new(self.prepared(features), None, self.metric)?;
        let centres = self.scaled_centres();
        let prepared = Prepared::new(&data, &centres);
        let k = prepared.len();
        let mut distances = vec![0.0; data.len() * k];
        parallel::each_row(&mut distances, k, |row, to| {
            for (at, to) in to.iter_mut().enumerate() {
                let far = prepared.dissimilarity(&data, row, at);
                *to = match self.metric {
                    KMeansMetric::Euclidean => far.sqrt(),
                    KMeansMetric::Cosine => far,
                };
            }
        });
        Dense::new(data.len(), k, distances).map(Some)
    }
}

impl Model for KMeansModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        let (k, d) = self.centres.shape();
        self.inputs.write(file);
        file.set("metric", &self.metric);
        file.tensor("centres", &[k, d], self.centres.values());
        if let Some(scale) = &self.scale {
            file.tensor("scale", &[d], scale);
        }
        file.tensor("sizes", &[k], &self.sizes);
        file.tensor_owned("inertia", &[2], vec![self.inertia, self.weight]);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = Inputs::read(file)?;
        let metric = file.get("metric")?;
        let sizes: Vec<u64> = file.vector("sizes")?;
        let (k, d) = (sizes.len(), inputs.n_features());
        let centres = Dense::new(k, d, file.finite("centres", &[k, d])?)?;
        let scale = if file.has("scale") { Some(file.finite::<f64>("scale", &[d])?) } else { None };
        if scale.iter().flatten().any(|scale| *scale <= 0.0) {
            return Err(file.broken("a feature is divided by what is not above 0"));
        }
        let inertia: Vec<f64> = file.finite("inertia", &[2])?;
        if k == 0 || k >= 1 << 24 || inertia.iter().any(|x| *x < 0.0) {
            return Err(file.broken("the clusters make no sense"));
        }
        let (inertia, weight) = (inertia[0], inertia[1]);
        Ok(Self { inputs, metric, centres, scale, sizes, inertia, weight, training: Vec::new() })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let shown: Vec<String> = self.sizes.iter().take(12).map(u64::to_string).collect();
        let more = if self.sizes.len() > 12 { ", …" } else { "" };
        let distance = match (self.metric, &self.scale) {
            (KMeansMetric::Euclidean, None) => "squared distance",
            (KMeansMetric::Euclidean, Some(_)) => "squared distance of standardised features",
            (KMeansMetric::Cosine, _) => "one minus the cosine",
        };
        vec![
            ("features", self.centres.n_cols().to_string()),
            ("clusters", self.n_clusters().to_string()),
            ("samples in each", format!("{}{more}", shown.join(", "))),
            ("inertia", format!("{:.6e} ({distance})", self.inertia)),
            ("mean of that", format!("{:.4e}", self.inertia / self.weight.max(f64::MIN_POSITIVE))),
        ]
    }

    fn clusterer(&self) -> Option<&dyn Cluster> {
        Some(self)
    }
}
