//! What an attack may change: bounds, units, columns that must stay, whole numbers and categories.

use super::Norm;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use gradus_data::{Dense, ImageShape, InputKind, Inputs, Matrix};
use std::ops::Range;

/// A column of words, encoded as a feature for each word.
#[derive(Clone, Debug, PartialEq)]
pub struct Category {
    /// The features of the words.
    pub features: Range<usize>,
    /// The distance that changing the word counts as.
    pub cost: f64,
    /// Whether one more word has no feature: all features are 0.
    pub implicit: bool,
}

/// The perturbations that are allowed. Distances are norms of `(x′ − x) / unit` over the features that may change; a changed
/// word of a category counts as one coordinate of size [`Category::cost`].
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    /// The norm of perturbations.
    pub norm: Norm,
    /// The smallest value of each feature; a sample below keeps its own.
    pub low: Vec<f64>,
    /// The largest value of each feature; a sample above keeps its own.
    pub high: Vec<f64>,
    /// The change of each feature that counts as 1; 0 for a feature that must stay as it is.
    pub unit: Vec<f64>,
    /// Whether a feature changes by whole numbers only.
    pub integer: Vec<bool>,
    /// The categories. Their features are set by them alone.
    pub categories: Vec<Category>,
    /// The layout of features that are pixels.
    pub image: Option<ImageShape>,
}

impl Space {
    /// Every feature may take any value, in its own unit.
    pub fn new(norm: Norm, n_features: usize) -> Self {
        Self {
            norm,
            low: vec![f64::NEG_INFINITY; n_features],
            high: vec![f64::INFINITY; n_features],
            unit: vec![1.0; n_features],
            integer: vec![false; n_features],
            categories: Vec::new(),
            image: None,
        }
    }

    /// What the inputs of a model allow: pixels from 0 to 1; of a table numbers, and categories that change from one word to another
    /// at a cost of 1. Features of text and of lists of words, and those that say that a value is missing, stay as they are.
    pub fn of_inputs(norm: Norm, inputs: &Inputs) -> Self {
        let mut space = Self::new(norm, inputs.n_features());
        match inputs {
            Inputs::Plain(_) => {}
            Inputs::Images(shape) => {
                space.low.fill(0.0);
                space.high.fill(1.0);
                space.image = Some(*shape);
            }
            Inputs::Columns(columns) => {
                let mut first = 0;
                for column in columns.iter() {
                    let features = first..first + column.width();
                    match &column.kind {
                        InputKind::Number { .. } => {
                            space.unit[features.start + 1..features.end].fill(0.0);
                        }
                        InputKind::Category { drop_first, .. } => space.categories.push(Category {
                            features: features.clone(),
                            cost: 1.0,
                            implicit: *drop_first,
                        }),
                        _ => space.unit[features.clone()].fill(0.0),
                    }
                    first = features.end;
                }
            }
        }
        space
    }

    /// The features of each column of a table, by the name of the column.
    pub fn columns(inputs: &Inputs) -> Vec<(String, Range<usize>)> {
        match inputs {
            Inputs::Columns(columns) => {
                let mut first = 0;
                let place = |column: &gradus_data::Input| {
                    let features = first..first + column.width();
                    first = features.end;
                    (column.name.clone(), features)
                };
                columns.iter().map(place).collect()
            }
            _ => {
                let names = inputs.feature_names().into_iter().enumerate();
                names.map(|(at, name)| (name, at..at + 1)).collect()
            }
        }
    }

    /// Takes the standard deviation of each feature over these rows as its unit. Features that must stay, constant ones and those of
    /// categories keep theirs.
    pub fn scale_by_deviation(&mut self, features: &Dense<f64>) {
        let n = features.n_rows().max(1) as f64;
        for at in 0..self.unit.len() {
            if self.unit[at] == 0.0 || self.category_of(at).is_some() {
                continue;
            }
            let mean = features.column(at).sum::<f64>() / n;
            let variance = features.column(at).map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
            if variance > 0.0 {
                self.unit[at] *= variance.sqrt();
            }
        }
    }

    /// The category that a feature belongs to.
    pub fn category_of(&self, feature: usize) -> Option<usize> {
        self.categories.iter().position(|category| category.features.contains(&feature))
    }

    /// Whether every perturbation in the ball and within the bounds is allowed, so that distances of linear models are exact.
    pub fn is_continuous(&self) -> bool {
        let whole =
            self.integer.iter().zip(&self.unit).any(|(integer, unit)| *integer && *unit > 0.0);
        let words = |category: &Category| {
            self.unit[category.features.clone()].iter().any(|unit| *unit > 0.0)
        };
        !whole && !self.categories.iter().any(words)
    }

    /// Refuses what contradicts itself.
    ///
    /// # Errors
    /// If nothing may change, a number is none, or a lower bound is above the upper one.
    pub fn check(&self, n_features: usize) -> Result<()> {
        let lengths = [self.low.len(), self.high.len(), self.unit.len(), self.integer.len()];
        if let Some(got) = lengths.iter().find(|length| **length != n_features) {
            return Err(Error::Shape {
                what: "bounds and units of features".into(),
                expected: n_features.to_string(),
                got: got.to_string(),
            });
        }
        for at in 0..n_features {
            let ordered = self.low[at] <= self.high[at];
            if !ordered {
                let (low, high) = (self.low[at], self.high[at]);
                return Err(Error::parameter(
                    "bounds",
                    format!("{low},{high}"),
                    "the lower one must not be above the upper one",
                ));
            }
            if !(self.unit[at] >= 0.0 && self.unit[at].is_finite()) {
                return Err(Error::parameter(
                    "budget",
                    self.unit[at],
                    "must be a number that is 0 or more",
                ));
            }
        }
        if let Some(category) =
            self.categories.iter().find(|category| category.cost.is_nan() || category.cost <= 0.0)
        {
            return Err(Error::parameter(
                "budget",
                category.cost,
                "the cost of a changed word must be above 0",
            ));
        }
        if self.categories.iter().any(|category| category.features.end > n_features) {
            return Err(Error::data("a category has features beyond the last one"));
        }
        if self.unit.iter().all(|unit| *unit == 0.0) {
            return Err(Error::data("no feature may change: there is nothing to attack"));
        }
        Ok(())
    }

    /// The distance of a changed row from the row itself.
    pub fn distance(&self, row: &[f64], changed: &[f64]) -> f64 {
        let mut parts: Vec<f64> = Vec::with_capacity(row.len());
        for (at, (x, y)) in row.iter().zip(changed).enumerate() {
            if self.unit[at] > 0.0 && self.categories.iter().all(|c| !c.features.contains(&at)) {
                parts.push((y - x) / self.unit[at]);
            }
        }
        for category in &self.categories {
            if row[category.features.clone()] != changed[category.features.clone()] {
                parts.push(category.cost);
            }
        }
        self.norm.length(&parts)
    }
}

/// A category among the coordinates of a [`Moves`].
#[derive(Clone, Debug)]
struct Words {
    coordinates: Range<usize>,
    features: Range<usize>,
    cost: f64,
    implicit: bool,
}

/// Perturbations of rows in coordinates: the features that may change, each in its unit.
#[derive(Clone)]
pub(super) struct Moves<'a> {
    pub space: &'a Space,
    pub rows: Dense<f64>,
    /// The number of each row in all of the data: its random numbers come from that.
    ids: Vec<u64>,
    /// The feature of each coordinate.
    features: Vec<u32>,
    unit: Vec<f64>,
    words: Vec<Words>,
    is_word: Vec<bool>,
    /// Bounds of each coordinate of each row; 0 lies between them.
    low: Vec<f64>,
    high: Vec<f64>,
}

impl<'a> Moves<'a> {
    pub fn new(space: &'a Space, rows: Dense<f64>, ids: Vec<u64>) -> Self {
        let features: Vec<u32> =
            (0..space.unit.len()).filter(|&at| space.unit[at] > 0.0).map(|at| at as u32).collect();
        let mut words = Vec::new();
        let mut is_word = vec![false; features.len()];
        let mut unit: Vec<f64> = features.iter().map(|&at| space.unit[at as usize]).collect();
        for category in &space.categories {
            let inside = |at: &u32| category.features.contains(&(*at as usize));
            let first = features.iter().position(inside);
            let n = features.iter().filter(|at| inside(at)).count();
            // A category of which a feature must stay, stays.
            if let Some(first) = first.filter(|_| n == category.features.len()) {
                let coordinates = first..first + n;
                is_word[coordinates.clone()].fill(true);
                unit[coordinates.clone()].fill(1.0 / category.cost);
                words.push(Words {
                    coordinates,
                    features: category.features.clone(),
                    cost: category.cost,
                    implicit: category.implicit,
                });
            }
        }
        let m = features.len();
        let (mut low, mut high) =
            (Vec::with_capacity(rows.n_rows() * m), Vec::with_capacity(rows.n_rows() * m));
        for row in rows.rows() {
            for ((&feature, unit), word) in features.iter().zip(&unit).zip(&is_word) {
                let at = feature as usize;
                let stays = space.category_of(at).is_some() && !word;
                let (least, most) = match (*word, stays) {
                    (true, _) => (0.0, 1.0),
                    (_, true) => (row[at], row[at]),
                    _ => (space.low[at], space.high[at]),
                };
                low.push(((least - row[at]) / unit).min(0.0));
                high.push(((most - row[at]) / unit).max(0.0));
            }
        }
        Self { space, rows, ids, features, unit, words, is_word, low, high }
    }

    /// The number of coordinates.
    pub fn len(&self) -> usize {
        self.features.len()
    }

    pub fn low(&self, row: u32) -> &[f64] {
        &self.low[row as usize * self.len()..][..self.len()]
    }

    pub fn high(&self, row: u32) -> &[f64] {
        &self.high[row as usize * self.len()..][..self.len()]
    }

    /// The random numbers of a row for a purpose.
    pub fn stream(&self, seed: u64, purpose: &str, row: u32) -> Stream {
        Stream::new(seed, purpose, self.ids[row as usize])
    }

    /// Moves a perturbation into the ball of radius `eps` and the bounds of the row.
    pub fn project(&self, row: u32, delta: &mut [f64], eps: f64) {
        self.space.norm.project(delta, eps, self.low(row), self.high(row));
    }

    /// The layout of the coordinates, if they are all pixels of an image.
    pub fn image(&self) -> Option<ImageShape> {
        self.space.image.filter(|shape| shape.len() == self.len())
    }

    /// The perturbation that makes a row another row, as far as it may change.
    pub fn delta_to(&self, row: u32, other: &[f64]) -> Vec<f64> {
        let x = self.rows.row(row as usize);
        let by =
            |(&feature, unit): (&u32, &f64)| (other[feature as usize] - x[feature as usize]) / unit;
        self.features.iter().zip(&self.unit).map(by).collect()
    }

    /// The derivative with respect to the coordinates of a derivative with respect to the features.
    pub fn pull(&self, gradient: &[f64], out: &mut [f64]) {
        for ((out, &feature), unit) in out.iter_mut().zip(&self.features).zip(&self.unit) {
            *out = gradient[feature as usize] * unit;
        }
    }

    /// The row of features that a perturbation makes: whole numbers are rounded towards the row, words are chosen by the largest
    /// coordinate, and words that would leave the ball of radius `eps` are changed back, the least strong first.
    pub fn lift(&self, row: u32, delta: &[f64], eps: f64, out: &mut [f64]) {
        let x = self.rows.row(row as usize);
        out.copy_from_slice(x);
        for (at, (&feature, unit)) in self.features.iter().zip(&self.unit).enumerate() {
            if self.is_word[at] {
                continue;
            }
            let feature = feature as usize;
            let by = delta[at] * unit;
            // 2.9999999999999996 is 3 to whoever multiplied by a unit.
            out[feature] +=
                if self.space.integer[feature] { (by * (1.0 + 1e-12)).trunc() } else { by };
        }
        if self.words.is_empty() {
            return;
        }
        let mut wanted: Vec<(f64, usize, Option<usize>)> = Vec::new();
        for (at, words) in self.words.iter().enumerate() {
            let x = &x[words.features.clone()];
            let ones = x.iter().filter(|value| **value == 1.0).count();
            let zeros = x.iter().filter(|value| **value == 0.0).count();
            // A word that training did not have is no word that could be changed into another.
            if ones + zeros != x.len() || ones > 1 || (ones == 0 && !words.implicit) {
                continue;
            }
            let current = x.iter().position(|value| *value == 1.0);
            let delta = &delta[words.coordinates.clone()];
            let unit = 1.0 / words.cost;
            let relaxed: Vec<f64> = x.iter().zip(delta).map(|(x, by)| x + by * unit).collect();
            let none = 1.0 - relaxed.iter().sum::<f64>();
            let of = |level: Option<usize>| level.map_or(none, |level| relaxed[level]);
            let levels = (0..relaxed.len()).map(Some).chain(words.implicit.then_some(None));
            let best =
                levels.fold(current, |best, level| if of(level) > of(best) { level } else { best });
            if best != current {
                wanted.push((of(best) - of(current), at, best));
            }
        }
        wanted.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let power = |x: f64| match self.space.norm {
            Norm::Linf => 0.0,
            Norm::L2 => x * x,
            Norm::L1 => x.abs(),
        };
        let parts = delta.iter().zip(&self.is_word).filter(|(_, word)| !**word);
        let mut spent: f64 = parts.map(|(by, _)| power(*by)).sum();
        for (_, at, level) in wanted {
            let words = &self.words[at];
            let fits = match self.space.norm {
                Norm::Linf => words.cost <= eps * (1.0 + 1e-12),
                norm => {
                    spent + power(words.cost)
                        <= if norm == Norm::L2 { eps * eps } else { eps } * (1.0 + 1e-9)
                }
            };
            if fits {
                spent += power(words.cost);
                let x = &mut out[words.features.clone()];
                x.fill(0.0);
                if let Some(level) = level {
                    x[level] = 1.0;
                }
            }
        }
    }

    /// The features of perturbed rows.
    pub fn lift_all(&self, points: &[(u32, &[f64])], eps: f64) -> Matrix {
        let mut out = Dense::full(points.len(), self.rows.n_cols(), 0.0);
        let d = self.rows.n_cols().max(1);
        gradus_base::parallel::each_row(out.values_mut(), d, |at, out| {
            let (row, delta) = points[at];
            self.lift(row, delta, eps, out);
        });
        Matrix::Dense(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number, a whole number, and a category of three words.
    fn mixed(norm: Norm) -> Space {
        let mut space = Space::new(norm, 5);
        space.integer[1] = true;
        space.unit[0] = 2.0;
        space.categories.push(Category { features: 2..5, cost: 1.0, implicit: false });
        space
    }

    #[test]
    fn whole_numbers_and_words_stay_valid() {
        let space = mixed(Norm::Linf);
        let moves = Moves::new(&space, Dense::from_rows(&[[1.0, 4.0, 0.0, 1.0, 0.0]]), vec![0]);
        let mut out = [0.0; 5];
        moves.lift(0, &[0.25, 1.7, 0.9, -0.9, 0.1], 2.0, &mut out);
        assert_eq!(out, [1.5, 5.0, 1.0, 0.0, 0.0]);
        assert_eq!(space.distance(moves.rows.row(0), &out), 1.0);
        // The change of a word costs 1, which a ball of radius 0.9 does not allow.
        moves.lift(0, &[0.25, -1.7, 0.9, -0.9, 0.1], 0.9, &mut out);
        assert_eq!(out, [1.5, 3.0, 0.0, 1.0, 0.0]);
        let space = mixed(Norm::L1);
        let moves = Moves::new(&space, Dense::from_rows(&[[1.0, 4.0, 0.0, 1.0, 0.0]]), vec![0]);
        moves.lift(0, &[0.25, 0.0, 0.9, -0.9, 0.1], 1.2, &mut out);
        assert_eq!(out, [1.5, 4.0, 0.0, 1.0, 0.0], "a quarter and a word are more than 1.2");
    }

    #[test]
    fn a_word_without_a_feature_is_reached() {
        let mut space = Space::new(Norm::Linf, 2);
        space.categories.push(Category { features: 0..2, cost: 0.5, implicit: true });
        let moves = Moves::new(&space, Dense::from_rows(&[[1.0, 0.0], [0.3, 0.7]]), vec![0, 1]);
        let mut out = [0.0; 2];
        moves.lift(0, &[-0.5, 0.0], 0.5, &mut out);
        assert_eq!(out, [0.0, 0.0]);
        moves.lift(1, &[-0.1, 0.1], 0.5, &mut out);
        assert_eq!(out, [0.3, 0.7], "the mean of words that training had is no word");
    }

    #[test]
    fn spaces_that_contradict_themselves_are_refused() {
        let text = |space: &Space| space.check(2).unwrap_err().to_string();
        let mut space = Space::new(Norm::L2, 2);
        space.check(2).unwrap();
        space.low[0] = 3.0;
        space.high[0] = 2.0;
        assert!(text(&space).contains("3,2"));
        let mut space = Space::new(Norm::L2, 2);
        space.unit = vec![0.0; 2];
        assert!(text(&space).contains("no feature may change"));
        assert!(text(&Space::new(Norm::L2, 3)).contains("expected 2, got 3"));
    }
}
