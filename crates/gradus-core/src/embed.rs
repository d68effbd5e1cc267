//! What an embedding can do: give vectors of named things, and tell which are near each other.

use gradus_base::{Error, Result};
use gradus_data::{Id, Ids};

/// A model that has a vector for each of many names: words, items, nodes of a graph.
pub trait Embed: Send + Sync {
    /// What the names are: `word`.
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

    /// The names whose vectors have the largest cosine with this vector, best first, without those at the
    /// places in `except`; of equal ones the first name comes first. A vector of zeros has the cosine 0 with
    /// every other.
    ///
    /// # Errors
    /// If the vector has another number of coordinates.
    fn nearest(&self, vector: &[f32], n: usize, except: &[usize]) -> Result<Vec<Neighbour>> {
        if vector.len() != self.dimension() {
            return Err(Error::Shape {
                what: "vector".into(),
                expected: format!("{} coordinates", self.dimension()),
                got: vector.len().to_string(),
            });
        }
        let mut found: Vec<Neighbour> = (0..self.names().len())
            .filter(|at| !except.contains(at))
            .map(|at| Neighbour { at, similarity: cosine(vector, self.vector(at)) })
            .collect();
        found.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
        found.truncate(n);
        Ok(found)
    }
}

/// A name near a vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// The place of the name among the names of the model.
    pub at: usize,
    /// The cosine of the angle between the two vectors.
    pub similarity: f64,
}

/// The cosine of the angle between two vectors, in double precision; 0 if one is all zeros.
pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let size = (dot(a, a) * dot(b, b)).sqrt();
    if size > 0.0 { dot(a, b) / size } else { 0.0 }
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
}
