//! Features in a fitted model: what they add to a row in each draw, and to a score.

use super::{Posterior, halves};
use gradus_base::{Error, Result, parallel};
use gradus_core::recommend::FeatureContribution;
use gradus_data::{Csr, Entity, FeatureEncoder, FeatureRow, Features};
use gradus_file::{Reader, Writer};
use gradus_kernel::Bf16;
use std::sync::Arc;

/// The features of one side of a model.
#[derive(Clone, Debug)]
pub(super) struct SideLinks {
    pub(super) encoder: Arc<FeatureEncoder>,
    /// The features of the rows, where the model keeps its training data.
    pub(super) rows: Option<Arc<Features>>,
    /// `W` of each draw: draw after draw, in each feature after feature, the bias last.
    pub(super) links: Vec<Bf16>,
}

/// Numbers of features and their values.
pub(super) type Described<'a> = (&'a [u32], &'a [f32]);

impl SideLinks {
    /// Returns the coefficients of a feature in a draw.
    fn row(&self, sample: usize, feature: usize, d: usize) -> &[Bf16] {
        &self.links[(sample * self.encoder.n_features() + feature) * d..][..d]
    }

    /// `Wᵀ(x − x̄)` in a draw.
    pub(super) fn gain(
        &self,
        sample: usize,
        (indices, values): Described<'_>,
        d: usize,
    ) -> Vec<f64> {
        let mut gain = vec![0.0; d];
        let mut add = |feature: usize, by: f64| {
            let row = self.row(sample, feature, d);
            gain.iter_mut().zip(row).for_each(|(sum, w)| *sum += by * f64::from(w.get()));
        };
        for (feature, mean) in self.encoder.mean().iter().enumerate() {
            if *mean != 0.0 {
                add(feature, -mean);
            }
        }
        indices.iter().zip(values).for_each(|(&at, &value)| add(at as usize, f64::from(value)));
        gain
    }
}

impl Posterior {
    /// The features of a user of the model, where it keeps them.
    pub(super) fn features_of(&self, of: Entity, row: usize) -> Option<Described<'_>> {
        let rows = self.side[of as usize].as_ref()?.rows.as_ref()?;
        rows.is_known(row).then(|| rows.matrix().row(row))
    }

    /// Refuses numbers that are none of features.
    pub(super) fn check_features(&self, features: &FeatureRow) -> Result<()> {
        let side = self.side[Entity::User as usize].as_ref();
        let n = side.ok_or_else(crate::latent::no_features)?.encoder.n_features();
        if features.indices.len() != features.values.len()
            || features.indices.iter().any(|&at| at as usize >= n)
        {
            return Err(Error::data(format!(
                "features: must be numbers of features below {n} with one value each"
            )));
        }
        Ok(())
    }

    /// Returns the contribution of each feature along a direction, the mean over the draws, largest first.
    pub(super) fn feature_contributions(
        &self,
        of: Entity,
        (indices, values): Described<'_>,
        directions: &[Vec<f64>],
    ) -> Vec<FeatureContribution> {
        let Some(side) = &self.side[of as usize] else { return Vec::new() };
        let (names, d) = (side.encoder.names(), self.d());
        let share = self.scale / self.samples() as f64;
        let mut found: Vec<FeatureContribution> = parallel::map(0..indices.len(), |at| {
            let feature = indices[at] as usize;
            let along: f64 = directions
                .iter()
                .enumerate()
                .map(|(sample, direction)| -> f64 {
                    let row = side.row(sample, feature, d).iter().zip(direction);
                    row.map(|(w, x)| f64::from(w.get()) * x).sum()
                })
                .sum();
            let contribution = (share * f64::from(values[at]) * along) as f32;
            FeatureContribution { of, feature: names[feature].clone(), contribution }
        });
        found.sort_by(|a, b| b.contribution.abs().total_cmp(&a.contribution.abs()));
        found
    }

    pub(super) fn write_features<'a>(&'a self, file: &mut Writer<'a>) {
        let (s, d) = (self.samples(), self.d());
        for (of, side) in Entity::ALL.into_iter().zip(&self.side) {
            let Some(side) = side else { continue };
            let name = of.option();
            side.encoder.write(name, file);
            let size = [s, side.encoder.n_features(), d];
            file.tensor(&format!("{}_links", of.name()), &size, &side.links);
            if let Some(rows) = &side.rows {
                rows.matrix().write(&format!("{name}.rows"), file);
                let known: Vec<u8> = rows.known().iter().map(|&known| u8::from(known)).collect();
                file.tensor_owned(&format!("{name}.known"), &[known.len()], known);
            }
        }
        if !self.unobserved_items.is_empty() {
            let which: Vec<u8> = self.unobserved_items.iter().map(|&x| u8::from(x)).collect();
            file.tensor_owned("items.unobserved", &[which.len()], which);
        }
    }
}

/// Reads what a file holds of features; `n` is the number of users and of items, `size` that of draws and of values.
pub(super) fn read(
    file: &mut Reader,
    n: (usize, usize),
    (s, d): (usize, usize),
) -> Result<([Option<SideLinks>; 2], Vec<bool>)> {
    let mut sides = [None, None];
    for (of, n) in Entity::ALL.into_iter().zip([n.0, n.1]) {
        let name = of.option();
        if !file.has(&format!("{name}.mean")) {
            continue;
        }
        let encoder = Arc::new(FeatureEncoder::read(name, file)?);
        let links = halves(file, &format!("{}_links", of.name()), &[s, encoder.n_features(), d])?;
        let rows = if file.has(&format!("{name}.known")) {
            let known: Vec<u8> = file.tensor(&format!("{name}.known"), &[n])?;
            let matrix = Csr::read(&format!("{name}.rows"), n, encoder.n_features(), file)?;
            let known = known.iter().map(|&known| known != 0).collect();
            Some(Arc::new(Features::new(matrix, known, Arc::clone(&encoder))?))
        } else {
            None
        };
        sides[of as usize] = Some(SideLinks { encoder, rows, links });
    }
    let which: Vec<u8> = if file.has("items.unobserved") {
        file.tensor("items.unobserved", &[n.1])?
    } else {
        Vec::new()
    };
    Ok((sides, which.iter().map(|&x| x != 0).collect()))
}
