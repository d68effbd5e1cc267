//! Features in a fitted model: the prior means of users and items, known and new, and what each feature adds to a
//! score.

use super::explain::Rated;
use super::fold_in::Fixed;
use super::{Affine, FactorVector, FoldIn, LatentFactors, RowRule, Squares};
use crate::side::FeatureMap;
use crate::vectors::Vectors;
use gradus_base::{Error, Result};
use gradus_core::recommend::{FeatureContribution, Profile};
use gradus_data::{Entity, FeatureEncoder, FeatureRow, Features, Ids, Ratings};
use gradus_file::{Reader, Writer};
use gradus_kernel::{Level, Rows, solve_semidefinite};
use std::sync::Arc;

/// The prior mean of a row: bias and factors.
pub(super) type PriorMean = (f32, Vec<f32>);

/// The features of one side of a model.
#[derive(Clone, Debug)]
pub(crate) struct SideModel {
    pub(super) encoder: Arc<FeatureEncoder>,
    pub(super) map: FeatureMap,
    /// The features of the rows, where the model keeps its training data.
    pub(super) rows: Option<Arc<Features>>,
}

/// Rows of which training observed nothing. They are at their prior mean and what is typical of all rows.
#[derive(Clone, Debug)]
pub(crate) struct UnobservedRows {
    /// For each row, whether it is unobserved.
    pub(crate) which: Vec<bool>,
    /// The offset from 0 of a row of which nothing is known (one row); the penalty does not include it.
    pub(crate) typical: Vectors,
}

impl UnobservedRows {
    /// Puts these rows where their features say, and what is typical.
    pub(crate) fn complete(
        &self,
        level: Level,
        side: Option<(&FeatureMap, &Features)>,
        (bias, factors): (&mut [f32], &mut Rows),
    ) {
        for row in (0..bias.len()).filter(|&row| self.which[row]) {
            let out = factors.row_mut(row);
            out.fill(0.0);
            let prior = match side.filter(|(_, features)| features.is_known(row)) {
                // To the last bit what their features say: the fit has rounded at every step.
                Some((map, features)) => map.mean(level, features.matrix().row(row), out),
                None => 0.0,
            };
            bias[row] = self.add_typical(prior, out);
        }
    }

    /// Adds what is typical of all rows to a prior mean, and returns the bias.
    fn add_typical(&self, bias: f32, factors: &mut [f32]) -> f32 {
        factors.iter_mut().zip(self.typical.factors.row(0)).for_each(|(x, &t)| *x += t);
        bias + self.typical.bias[0]
    }
}

impl LatentFactors {
    /// Adds the maps from the features of the training data, and the rows without observations.
    pub(crate) fn with_maps(
        mut self,
        maps: [Option<FeatureMap>; 2],
        unobserved: [Option<UnobservedRows>; 2],
        data: &Ratings,
    ) -> Self {
        for (of, unobserved) in Entity::ALL.into_iter().zip(&unobserved) {
            let Some(unobserved) = unobserved else { continue };
            let side =
                maps[of as usize].as_ref().zip(data.features(of).map(|features| &**features));
            let rows = match of {
                Entity::User => (&mut self.user_bias[..], &mut self.user_factors),
                Entity::Item => (&mut self.item_bias[..], &mut self.item_factors),
            };
            unobserved.complete(self.level, side, rows);
        }
        for (of, map) in Entity::ALL.into_iter().zip(maps) {
            if let (Some(map), Some(features)) = (map, data.features(of)) {
                self.side[of as usize] = Some(SideModel {
                    encoder: Arc::clone(features.encoder()),
                    map,
                    rows: self.history.is_some().then(|| Arc::clone(features)),
                });
            }
        }
        self.unobserved = unobserved;
        self
    }

    /// Returns the bias and the factors of a row of which nothing is known.
    pub(super) fn typical(&self, of: Entity) -> Option<(f32, &[f32])> {
        let typical = &self.unobserved[of as usize].as_ref()?.typical;
        Some((typical.bias[0], typical.factors.row(0)))
    }

    /// How features of users or items are encoded, if the model learned from any.
    pub fn feature_encoder(&self, of: Entity) -> Option<&Arc<FeatureEncoder>> {
        self.side[of as usize].as_ref().map(|side| &side.encoder)
    }

    /// Returns the coefficients of a feature: what a value of 1 adds to the bias and to the factors of the prior mean
    /// of a row.
    ///
    /// # Panics
    /// If there is no such feature.
    pub fn feature_coefficients(&self, of: Entity, feature: usize) -> Option<(f32, &[f32])> {
        let coefficients = &self.side[of as usize].as_ref()?.map.coefficients;
        Some((coefficients.bias[feature], &coefficients.factors.row(feature)[..self.rank()]))
    }

    /// The prior mean of a row of the model; `None` is 0.
    pub(super) fn prior(&self, of: Entity, row: usize) -> Option<PriorMean> {
        let side = self.side[of as usize].as_ref()?;
        let rows = side.rows.as_ref().filter(|rows| rows.is_known(row))?;
        let mut factors = vec![0.0; self.item_factors.stride()];
        let bias = side.map.mean(self.level, rows.matrix().row(row), &mut factors);
        Some((bias, factors))
    }

    /// The prior mean of a user with these features.
    pub(super) fn prior_of_new(&self, features: &FeatureRow) -> Result<PriorMean> {
        let side = self.side[Entity::User as usize].as_ref().ok_or_else(no_features)?;
        let n = side.encoder.n_features();
        if features.indices.len() != features.values.len()
            || features.indices.iter().any(|&at| at as usize >= n)
        {
            return Err(Error::data(format!(
                "features: must be numbers of features below {n} with one value each"
            )));
        }
        Ok(side.map.mean_of(self.level, features))
    }

    /// Solves for someone new from features, and from ratings if there are any, the items held fixed.
    ///
    /// # Errors
    /// If the model learned from no features of users, or the ratings cannot be used.
    pub fn fold_in_described(
        &self,
        features: &FeatureRow,
        rated: Option<&Profile>,
    ) -> Result<FactorVector> {
        let prior = self.prior_of_new(features)?;
        let Some(profile) = rated else {
            let (bias, factors) = self.at_prior(Entity::User, prior);
            let normal = self.normal.as_ref().map_or(Affine::IDENTITY, |normal| normal.user(None));
            return Ok(FactorVector { bias, factors, normal });
        };
        let Profile { items, values } = profile.sorted(self.items.len())?;
        self.check_profile(&values)?;
        Ok(self.solve_user(&items, &values, None, Some(prior)))
    }

    /// Returns the row of which nothing was observed but its features, given its prior mean.
    pub(super) fn at_prior(&self, of: Entity, (bias, mut factors): PriorMean) -> PriorMean {
        match &self.unobserved[of as usize] {
            Some(unobserved) => (unobserved.add_typical(bias, &mut factors), factors),
            None => (bias, factors),
        }
    }

    /// Solves a row about its prior mean.
    pub(super) fn solve_about(
        &self,
        rule: &RowRule,
        fixed: &Fixed<'_>,
        indices: &[u32],
        mut targets: Vec<f32>,
        weights: Option<&[f32]>,
        prior: Option<PriorMean>,
    ) -> FactorVector {
        let Some((bias, row)) = prior else {
            return self.solve_row(rule, fixed, indices, &targets, weights);
        };
        let mut products = vec![0.0; indices.len()];
        gradus_kernel::dots(self.level, fixed.factors.as_slice(), indices, &row, &mut products);
        targets.iter_mut().zip(products).for_each(|(target, x)| *target -= bias + x);
        let mut vector = self.solve_row(rule, fixed, indices, &targets, weights);
        vector.factors.iter_mut().zip(row).for_each(|(x, c)| *x += c);
        vector.bias += bias;
        vector
    }

    /// Returns the contribution of each feature of a user to the score of an item: an exact decomposition, like that by
    /// ratings.
    ///
    /// A user is `x = A⁻¹(Σ_j w_j y_j v_j + Λ m)` with `A = Σ_j w_j v_j v_jᵀ + Λ`, so feature `f` of `m = Wᵀ(x − x̄)`
    /// adds `x_f · W_f Λ A⁻¹ v_i`; without ratings `x` is `m` itself.
    pub(super) fn user_features(
        &self,
        features: (&[u32], &[f32]),
        rated: Rated<'_>,
        item: usize,
        unit: f64,
    ) -> Vec<FeatureContribution> {
        let Some(side) = &self.side[Entity::User as usize] else { return Vec::new() };
        let mut direction = match &self.fold_in {
            FoldIn::Squares(rule) => self.prior_direction(rule, rated.0, rated.2, item),
            FoldIn::Implicit(rule) => self.implicit_prior_direction(rule, rated, item),
            _ => return Vec::new(),
        };
        direction.iter_mut().for_each(|x| *x *= unit);
        contributions(Entity::User, side, features, &direction)
    }

    /// `Λ A⁻¹ v_i`, or `v_i` for a user without ratings; the last entry is that of the bias.
    fn prior_direction(
        &self,
        rule: &Squares,
        items: &[u32],
        weights: Option<&[f32]>,
        item: usize,
    ) -> Vec<f64> {
        let k = self.rank();
        let vector = |item: u32| -> Vec<f64> {
            let factors = self.item_factors(item as usize).iter().map(|&x| f64::from(x));
            factors.chain(rule.biases.then_some(1.0)).collect()
        };
        let mut direction = vector(item as u32);
        let weight = |at: usize| weights.map_or(1.0, |weights| f64::from(weights[at]));
        if (0..items.len()).any(|at| weight(at) > 0.0) {
            let d = direction.len();
            let (lambda, of_bias) = rule.of_users().of(items.len(), weights);
            let penalty =
                |at: usize| f64::from(if at < k { lambda } else { of_bias.unwrap_or(0.0) });
            let mut system = vec![0.0; d * d];
            for (at, &item) in items.iter().enumerate() {
                let v = vector(item);
                for (row, x) in system.chunks_exact_mut(d).zip(&v) {
                    row.iter_mut().zip(&v).for_each(|(sum, y)| *sum += weight(at) * x * y);
                }
            }
            (0..d).for_each(|at| system[at * d + at] += penalty(at));
            solve_semidefinite(d, &mut system, &mut direction);
            direction.iter_mut().enumerate().for_each(|(at, x)| *x *= penalty(at));
        }
        direction.resize(k + 1, 0.0);
        direction
    }

    /// Returns the contribution of each feature of an item to its score for this user, by way of the item's prior mean.
    pub(super) fn item_features_for(
        &self,
        vector: &FactorVector,
        item: usize,
        unit: f64,
    ) -> Vec<FeatureContribution> {
        let Some(side) = &self.side[Entity::Item as usize] else { return Vec::new() };
        let Some(rows) = side.rows.as_ref().filter(|rows| rows.is_known(item)) else {
            return Vec::new();
        };
        let factors = vector.factors[..self.rank()].iter().map(|&x| unit * f64::from(x));
        let direction: Vec<f64> = factors.chain([unit]).collect();
        contributions(Entity::Item, side, rows.matrix().row(item), &direction)
    }

    /// The features of a user of the model, where it keeps them.
    pub(super) fn features_of_user(&self, row: usize) -> Option<(&[u32], &[f32])> {
        let rows = self.side[Entity::User as usize].as_ref()?.rows.as_ref()?;
        rows.is_known(row).then(|| rows.matrix().row(row))
    }

    /// Brings the features of both sides into the order of more users and items, with those of new ratings.
    pub(super) fn move_features(
        &mut self,
        events: &Ratings,
        (users, items): (&Ids, &Ids),
        (user_places, item_places): (&[u32], &[u32]),
        touched: [&[u32]; 2],
    ) {
        for of in Entity::ALL {
            let (ids, places, own) = match of {
                Entity::User => (users, user_places, events.users()),
                Entity::Item => (items, item_places, events.items()),
            };
            if let Some(unobserved) = &mut self.unobserved[of as usize] {
                let mut moved = vec![false; ids.len()];
                for (&which, &place) in unobserved.which.iter().zip(places) {
                    moved[place as usize] = which;
                }
                for &row in touched[of as usize] {
                    moved[row as usize] = false;
                }
                unobserved.which = moved;
            }
            let Some(side) = &mut self.side[of as usize] else { continue };
            let Some(rows) = &side.rows else { continue };
            let new = events.features(of);
            if ids.len() == rows.known().len() && new.is_none() {
                continue;
            }
            // Ids without a rating are not added to the model.
            let known = own.iter().map(|id| ids.find(id));
            let found: Vec<(u32, u32)> =
                (0..).zip(known).filter_map(|(row, place)| Some((row, place?))).collect();
            let chosen: Vec<u32> = found.iter().map(|pair| pair.0).collect();
            let at: Vec<u32> = found.iter().map(|pair| pair.1).collect();
            let new = new.map(|new| new.select_rows(&chosen));
            let moved = rows.merged(ids.len(), places, new.as_ref().map(|new| (new, &at[..])));
            side.rows = Some(Arc::new(moved));
        }
    }

    /// Refuses features of new ratings that were not encoded as those of the model.
    pub(super) fn check_features(&self, events: &Ratings) -> Result<()> {
        for of in Entity::ALL {
            let Some(features) = events.features(of) else { continue };
            let fits = self.feature_encoder(of).is_some_and(|own| own == features.encoder());
            if !fits {
                return Err(Error::data(format!(
                    "option `{}`: the model was not fitted with such features of {}s",
                    of.option(),
                    of.name()
                )));
            }
        }
        Ok(())
    }

    pub(super) fn write_features<'a>(&'a self, file: &mut Writer<'a>) {
        for (of, unobserved) in Entity::ALL.into_iter().zip(&self.unobserved) {
            let Some(unobserved) = unobserved else { continue };
            unobserved.typical.write(&format!("{}_typical", of.name()), file);
            let which: Vec<u8> = unobserved.which.iter().map(|&x| u8::from(x)).collect();
            file.tensor_owned(&format!("{}s.unobserved", of.name()), &[which.len()], which);
        }
        for (of, side) in Entity::ALL.into_iter().zip(&self.side) {
            let Some(side) = side else { continue };
            let name = of.option();
            side.encoder.write(name, file);
            side.map.write(&format!("{}_map", of.name()), file);
            if let Some(rows) = &side.rows {
                rows.matrix().write(&format!("{name}.rows"), file);
                let known: Vec<u8> = rows.known().iter().map(|&known| u8::from(known)).collect();
                file.tensor_owned(&format!("{name}.known"), &[known.len()], known);
            }
        }
    }

    pub(super) fn read_features(&mut self, file: &mut Reader) -> Result<()> {
        let rank = self.rank();
        for of in Entity::ALL {
            let n = match of {
                Entity::User => self.users.len(),
                Entity::Item => self.items.len(),
            };
            let which = format!("{}s.unobserved", of.name());
            if file.has(&which) {
                let which: Vec<u8> = file.tensor(&which, &[n])?;
                self.unobserved[of as usize] = Some(UnobservedRows {
                    which: which.iter().map(|&x| x != 0).collect(),
                    typical: Vectors::read(&format!("{}_typical", of.name()), file, 1, rank)?,
                });
            }
            let name = of.option();
            if !file.has(&format!("{name}.mean")) {
                continue;
            }
            let encoder = Arc::new(FeatureEncoder::read(name, file)?);
            let map = FeatureMap::read(&format!("{}_map", of.name()), file, &encoder, rank)?;
            let rows = if file.has(&format!("{name}.known")) {
                let known: Vec<u8> = file.tensor(&format!("{name}.known"), &[n])?;
                let rows = format!("{name}.rows");
                let matrix = gradus_data::Csr::read(&rows, n, encoder.n_features(), file)?;
                let known = known.iter().map(|&known| known != 0).collect();
                Some(Arc::new(Features::new(matrix, known, Arc::clone(&encoder))?))
            } else {
                None
            };
            self.side[of as usize] = Some(SideModel { encoder, map, rows });
        }
        Ok(())
    }
}

/// The error of features where the model learned from none.
pub(crate) fn no_features() -> Error {
    Error::data(
        "the model was fitted without features of users (option `user_features`), so it can make nothing of \
         features: describe someone by ratings instead",
    )
}

/// Returns the contribution of each feature along a direction, largest first.
fn contributions(
    of: Entity,
    side: &SideModel,
    (indices, values): (&[u32], &[f32]),
    direction: &[f64],
) -> Vec<FeatureContribution> {
    let names = side.encoder.names();
    let mut found: Vec<FeatureContribution> = indices
        .iter()
        .zip(values)
        .map(|(&feature, &value)| {
            let coefficients = side.map.coefficients.row(feature as usize);
            let along: f64 = coefficients.zip(direction).map(|(w, d)| f64::from(w) * d).sum();
            let contribution = (f64::from(value) * along) as f32;
            FeatureContribution { of, feature: names[feature as usize].clone(), contribution }
        })
        .collect();
    found.sort_by(|a, b| b.contribution.abs().total_cmp(&a.contribution.abs()));
    found
}
