//! Clusterings: the cluster of a sample, distances to clusters, memberships.

use gradus_base::Result;
use gradus_data::{Dense, Inputs, Matrix};
use std::borrow::Cow;

/// A model that groups samples without known groups.
///
/// Clusters are numbered from 0.
pub trait Cluster: Send + Sync {
    /// The input features that the model expects.
    fn inputs(&self) -> &Inputs;

    /// The number of clusters.
    fn n_clusters(&self) -> usize;

    /// The number of training samples in each cluster.
    fn sizes(&self) -> Vec<u64>;

    /// The clusters of the training samples, if the model was just fitted and has kept them; a model file does not hold them.
    fn training_labels(&self) -> Option<Vec<Option<u32>>> {
        None
    }

    /// The cluster of each sample; `None` of a sample that belongs to none (noise).
    ///
    /// # Errors
    /// If the number of features is not that of training, or one is not finite.
    fn labels(&self, features: &Matrix) -> Result<Vec<Option<u32>>>;

    /// The distance of each sample to each cluster; `None` if the model has no distances. A sample
    /// belongs to the nearest cluster.
    ///
    /// # Shapes
    /// `n × features` to `n × clusters`.
    ///
    /// # Errors
    /// As [`labels`](Self::labels).
    fn distances(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        let _ = features;
        Ok(None)
    }

    /// The features as the model measures distances: standardised, or divided by their norms, where it does so. Measures
    /// of clusters, such as the silhouette, are taken of these. The number of features must be that of training.
    fn measured<'a>(&self, features: &'a Matrix) -> Cow<'a, Matrix> {
        Cow::Borrowed(features)
    }

    /// The probability that each sample belongs to each cluster; `None` if the model has no
    /// probabilities. A sample belongs to the most probable cluster.
    ///
    /// # Shapes
    /// `n × features` to `n × clusters`; rows add up to 1.
    ///
    /// # Errors
    /// As [`labels`](Self::labels).
    fn memberships(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        let _ = features;
        Ok(None)
    }
}

/// The label of a sample that belongs to no cluster, where labels are plain numbers.
pub const NOISE: i64 = -1;

/// Labels as plain numbers: that of noise is [`NOISE`].
pub fn numbers(labels: &[Option<u32>]) -> Vec<i64> {
    labels.iter().map(|label| label.map_or(NOISE, i64::from)).collect()
}
