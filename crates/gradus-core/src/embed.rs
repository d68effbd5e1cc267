//! The capability of embeddings: vectors of named things, and their nearest neighbours.

use gradus_base::{Error, Result};
use gradus_data::{Id, Ids};
use std::borrow::Cow;

/// A model that has a vector for each of many names: words, items, nodes of a graph.
pub trait Embed: Send + Sync {
    /// Returns the kind of the names: `word`.
    fn what(&self) -> &'static str;

    /// The names, ascending.
    fn names(&self) -> &Ids;

    /// The number of coordinates of a vector.
    fn dimension(&self) -> usize;

    /// The vector of the name at this place among [`names`](Self::names).
    ///
    /// # Panics
    /// If there are not so many names.
    fn vector(&self, at: usize) -> &[f32];

    /// Returns the count of each name in training, if known.
    fn counts(&self) -> Option<&[u64]> {
        None
    }

    /// The places of the names, the most frequent first where frequencies are known.
    fn ranking(&self) -> Cow<'_, [u32]> {
        let mut places: Vec<u32> = (0..self.names().len() as u32).collect();
        if let Some(counts) = self.counts() {
            places.sort_by_key(|&at| std::cmp::Reverse(counts[at as usize]));
        }
        Cow::Owned(places)
    }

    /// The place of a name among [`names`](Self::names).
    ///
    /// # Errors
    /// If the model does not know the name.
    fn find(&self, name: &str) -> Result<usize> {
        self.names().find(Id::Text(name)).map(|at| at as usize).ok_or_else(|| Error::UnknownId {
            what: self.what(),
            id: name.to_owned(),
            hint: "it is not in the training data, or too rare there".into(),
        })
    }

    /// Whether the model has a vector of a name: without the work that a helpful error takes.
    fn knows(&self, name: &str) -> bool {
        self.vector_of(name).is_ok()
    }

    /// Whether a name is one of [`names`](Self::names), so that it can be among the [`nearest`](Self::nearest): without the work
    /// that a helpful error takes.
    fn names_it(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    /// The vector of a name. A model that makes vectors of names from their parts has one for names it cannot
    /// [`find`](Self::find), too.
    ///
    /// # Errors
    /// If the model has no vector of the name.
    fn vector_of(&self, name: &str) -> Result<Cow<'_, [f32]>> {
        Ok(Cow::Borrowed(self.vector(self.find(name)?)))
    }

    /// The cosine of every name with a vector, in the order of the names. A vector of zeros has the cosine 0 with every
    /// other.
    ///
    /// # Errors
    /// If the vector has another number of coordinates.
    fn cosines(&self, vector: &[f32]) -> Result<Vec<f64>> {
        self.check_dimension(vector)?;
        Ok((0..self.names().len()).map(|at| cosine(vector, self.vector(at))).collect())
    }

    /// The names whose vectors have the largest cosine with this vector, best first, without those at the
    /// places in `except`; of equal ones the first name comes first. A vector of zeros has the cosine 0 with
    /// every other.
    ///
    /// # Errors
    /// If the vector has another number of coordinates.
    fn nearest(&self, vector: &[f32], n: usize, except: &[usize]) -> Result<Vec<Neighbour>> {
        Ok(best(&self.cosines(vector)?, n, except))
    }

    /// [`nearest`](Self::nearest) of several vectors, of which each has names of its own to leave out.
    ///
    /// # Errors
    /// If a vector has another number of coordinates.
    fn nearest_many(&self, queries: &[Query]) -> Result<Vec<Vec<Neighbour>>> {
        queries.iter().map(|query| self.nearest(&query.vector, query.n, &query.except)).collect()
    }

    /// Refuses a vector of another number of coordinates.
    ///
    /// # Errors
    /// Names both numbers.
    fn check_dimension(&self, vector: &[f32]) -> Result<()> {
        if vector.len() == self.dimension() {
            return Ok(());
        }
        Err(Error::Shape {
            what: "vector".into(),
            expected: format!("{} coordinates", self.dimension()),
            got: vector.len().to_string(),
        })
    }

    /// The cosine of the vectors of two names.
    ///
    /// # Errors
    /// If the model has no vector of one.
    fn similarity(&self, a: &str, b: &str) -> Result<f64> {
        Ok(cosine(&self.vector_of(a)?, &self.vector_of(b)?))
    }

    /// The query of the names most like all of `plus` and least like those of `minus`: the sum of their vectors, each of
    /// length 1, with these names left out.
    ///
    /// # Errors
    /// If no name is given, or the model has no vector of one.
    fn query(&self, plus: &[&str], minus: &[&str], n: usize) -> Result<Query> {
        if plus.is_empty() && minus.is_empty() {
            return Err(Error::data(format!("no {} is given to compare with", self.what())));
        }
        let mut sum = vec![0f64; self.dimension()];
        let mut except = Vec::new();
        let signed =
            plus.iter().map(|name| (1.0, name)).chain(minus.iter().map(|name| (-1.0, name)));
        for (sign, name) in signed {
            let vector = self.vector_of(name)?;
            let scale = sign * inverse_length(&vector);
            sum.iter_mut().zip(&*vector).for_each(|(sum, x)| *sum += scale * f64::from(*x));
            if self.names_it(name) {
                except.push(self.find(name)?);
            }
        }
        let vector = sum.into_iter().map(|x| x as f32).collect();
        Ok(Query { vector, n, except })
    }

    /// The names that complete the analogy "`a` is to `b` as the name to `c`", best first, without the three: `king` is to
    /// `man` as `queen` to `woman`.
    ///
    /// # Errors
    /// If the model has no vector of one of them.
    fn analogy(&self, [a, b, c]: [&str; 3], n: usize, rule: Analogy) -> Result<Vec<Neighbour>> {
        let query = self.query(&[a, c], &[b], n)?;
        match rule {
            Analogy::Add => self.nearest(&query.vector, n, &query.except),
            Analogy::Multiply => {
                let [a, b, c] = [a, b, c].map(|name| -> Result<Vec<f64>> {
                    let cosines = self.cosines(&self.vector_of(name)?)?;
                    // From 0 to 1, so that a product of two negative cosines is not large.
                    Ok(cosines.into_iter().map(|x| f64::midpoint(x, 1.0)).collect())
                });
                let (a, b, c) = (a?, b?, c?);
                let score = |((a, b), c): ((&f64, &f64), &f64)| a * c / (b + 1e-3);
                let scores: Vec<f64> = a.iter().zip(&b).zip(&c).map(score).collect();
                Ok(best(&scores, n, &query.except))
            }
        }
    }

    /// Returns the index of the name that is least like the others: the one whose vector has the smallest cosine with
    /// the sum of all, each of length 1. Of equal ones the first.
    ///
    /// # Errors
    /// If there are fewer than three names, or the model has no vector of one.
    fn odd_one_out(&self, names: &[&str]) -> Result<usize> {
        if names.len() < 3 {
            let (n, what) = (names.len(), self.what());
            return Err(Error::data(format!(
                "the odd one out needs at least 3 {what}s, and {n} are given"
            )));
        }
        let sum = self.query(names, &[], 0)?.vector;
        let mut least = (f64::INFINITY, 0);
        for (at, name) in names.iter().enumerate() {
            let cosine = cosine(&sum, &self.vector_of(name)?);
            if cosine < least.0 {
                least = (cosine, at);
            }
        }
        Ok(least.1)
    }
}

/// A vector whose nearest names are asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The vector.
    pub vector: Vec<f32>,
    /// How many names.
    pub n: usize,
    /// The places of the names to leave out.
    pub except: Vec<usize>,
}

/// How the candidates of an analogy "`a` is to `b` as `x` to `c`" are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Analogy {
    /// `cos(x, a − b + c)` (3CosAdd; Mikolov, Yih and Zweig, 2013)
    #[default]
    Add,
    /// `cos(x, a) cos(x, c) / (cos(x, b) + ε)`, with cosines moved to 0..1 and ε = 0.001 (3CosMul; Levy and Goldberg, 2014)
    Multiply,
}

/// A name near a vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// The place of the name among the names of the model.
    pub at: usize,
    /// The cosine of the angle between the two vectors; of [`Analogy::Multiply`] its score.
    pub similarity: f64,
}

/// The places of the largest scores, best first, without those in `except`; of equal ones the first.
pub fn best(scores: &[f64], n: usize, except: &[usize]) -> Vec<Neighbour> {
    let all = scores.iter().enumerate().filter(|(at, _)| !except.contains(at));
    let mut found: Vec<Neighbour> =
        all.map(|(at, &similarity)| Neighbour { at, similarity }).collect();
    let order =
        |a: &Neighbour, b: &Neighbour| b.similarity.total_cmp(&a.similarity).then(a.at.cmp(&b.at));
    if n == 0 {
        return Vec::new();
    }
    if n < found.len() {
        found.select_nth_unstable_by(n - 1, order);
        found.truncate(n);
    }
    found.sort_by(order);
    found
}

/// The cosine of the angle between two vectors, in double precision; 0 if one is all zeros.
pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let size = (dot(a, a) * dot(b, b)).sqrt();
    if size > 0.0 { dot(a, b) / size } else { 0.0 }
}

/// One over the length of a vector; 0 of a vector of zeros.
pub fn inverse_length(vector: &[f32]) -> f64 {
    let square: f64 = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    if square > 0.0 { 1.0 / square.sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_data::TextIds;

    struct Four(Ids);

    impl Embed for Four {
        fn what(&self) -> &'static str {
            "word"
        }

        fn names(&self) -> &Ids {
            &self.0
        }

        fn dimension(&self) -> usize {
            2
        }

        fn vector(&self, at: usize) -> &[f32] {
            &[[1.0, 0.0], [2.0, 2.0], [0.0, 0.0], [-3.0, 0.0]][at]
        }
    }

    #[test]
    fn the_nearest_are_in_the_order_of_the_cosine() {
        let mut names = TextIds::new();
        ["a", "b", "c", "d"].into_iter().for_each(|name| names.push(name));
        let model = Four(Ids::Text(names));
        let found = model.nearest(&[1.0, 0.0], 9, &[0]).unwrap();
        let places: Vec<usize> = found.iter().map(|neighbour| neighbour.at).collect();
        assert_eq!(places, [1, 2, 3]);
        assert!((found[0].similarity - 0.5f64.sqrt()).abs() < 1e-12);
        assert_eq!((found[1].similarity, found[2].similarity), (0.0, -1.0));
        assert_eq!(model.nearest(&[1.0, 0.0], 1, &[]).unwrap()[0].at, 0);
        assert!(model.nearest(&[1.0], 1, &[]).unwrap_err().to_string().contains("2 coordinates"));
        assert_eq!(model.find("b").unwrap(), 1);
        assert!(model.find("zebra").unwrap_err().to_string().contains("unknown word `zebra`"));
    }

    struct Words(Ids);

    impl Embed for Words {
        fn what(&self) -> &'static str {
            "word"
        }

        fn names(&self) -> &Ids {
            &self.0
        }

        fn dimension(&self) -> usize {
            3
        }

        fn vector(&self, at: usize) -> &[f32] {
            // apple, king, man, queen, woman: a fruit, and royalty and sex in two coordinates.
            &[[0.0, 0.1, 1.0], [2.0, 1.0, 0.0], [0.1, 1.0, 0.0], [2.0, -1.0, 0.0], [0.1, -1.0, 0.1]]
                [at]
        }
    }

    #[test]
    fn an_analogy_is_completed_without_its_own_names() {
        let names = ["apple", "king", "man", "queen", "woman"].into_iter().collect();
        let model = Words(Ids::Text(names));
        for rule in [Analogy::Add, Analogy::Multiply] {
            let found = model.analogy(["king", "man", "woman"], 9, rule).unwrap();
            assert_eq!(found.iter().map(|near| near.at).collect::<Vec<_>>(), [3, 0], "{rule:?}");
        }
        assert_eq!(model.odd_one_out(&["king", "queen", "apple", "woman"]).unwrap(), 2);
        let few = model.odd_one_out(&["king", "queen"]).unwrap_err().to_string();
        assert!(few.contains("at least 3 words, and 2"), "{few}");
        let unknown = model.analogy(["king", "man", "girl"], 1, Analogy::Add).unwrap_err();
        assert!(unknown.to_string().contains("unknown word `girl`"), "{unknown}");
        assert!(model.query(&[], &[], 1).is_err());
        let same = model.similarity("king", "king").unwrap();
        assert!((same - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_best_scores_are_those_of_a_whole_sort() {
        let scores = [0.5, 0.9, 0.5, -1.0, 0.9];
        let places = |n: usize, except: &[usize]| -> Vec<usize> {
            best(&scores, n, except).iter().map(|near| near.at).collect()
        };
        assert_eq!(places(9, &[]), [1, 4, 0, 2, 3]);
        assert_eq!(places(3, &[]), [1, 4, 0]);
        assert_eq!(places(2, &[1]), [4, 0]);
        assert_eq!(places(0, &[]), [0; 0]);
    }
}
