//! Data with a known truth behind it, written as CSV.

use gradus_base::text::csv_field;
use gradus_base::{Error, Result};
use gradus_data::make::{
    BlobsSpec, MadeSequences, PlaneSpec, RatingsMaker, RatingsSpec, RegressionSpec, SequencesSpec,
};
use gradus_data::{Dense, Id};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// The data set to make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MakeRequest {
    /// The kind of data, and its truth.
    #[serde(flatten)]
    pub data: MakeData,
    /// Seed of the random numbers.
    #[serde(default)]
    pub seed: u64,
}

/// A kind of data that can be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MakeData {
    /// Ratings of a believable catalogue.
    Ratings(RatingsSpec),
    /// Features and a target that depends on them linearly.
    Regression(RegressionSpec),
    /// Gaussian clouds around random centres, and the class of each point.
    Blobs(BlobsSpec),
    /// Pairs of texts where the second is a function of the first.
    Sequences(SequencesSpec),
    /// Points of the plane near moons, rings or clouds on a circle, and the part that each lies near.
    Plane(PlaneSpec),
}

/// Data that is made, ready to be written.
pub struct Made {
    /// The name of the units: `ratings`.
    pub units: &'static str,
    /// The number of units.
    pub count: usize,
    content: Content,
}

enum Content {
    Ratings(Box<RatingsMaker>),
    Samples(Dense<f64>, Vec<f64>),
    Sequences(MadeSequences),
}

impl MakeRequest {
    /// Makes the data; ratings are made block by block as they are written.
    ///
    /// # Errors
    /// If a parameter is outside its range.
    pub fn make(&self) -> Result<Made> {
        let samples = |x: Dense<f64>, y: Vec<f64>| Made {
            units: "samples",
            count: y.len(),
            content: Content::Samples(x, y),
        };
        Ok(match &self.data {
            MakeData::Ratings(spec) => Made {
                units: "ratings",
                count: spec.count,
                content: Content::Ratings(Box::new(spec.plan(self.seed)?)),
            },
            MakeData::Regression(spec) => {
                let made = spec.make(self.seed)?;
                samples(made.x, made.y)
            }
            MakeData::Blobs(spec) => {
                let made = spec.make(self.seed)?;
                let classes = made.labels.iter().map(|&label| f64::from(label)).collect();
                samples(made.points, classes)
            }
            MakeData::Sequences(spec) => Made {
                units: "pairs",
                count: spec.count,
                content: Content::Sequences(spec.make(self.seed)?),
            },
            MakeData::Plane(spec) => {
                let made = spec.make(self.seed)?;
                let classes = made.parts.iter().map(|&part| f64::from(part)).collect();
                samples(made.points, classes)
            }
        })
    }
}

impl Made {
    /// Writes the data as CSV: `user,item,rating`; the features `x1`, `x2`, … and the target `y`; or `source,target`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, out: &mut (impl Write + Send)) -> io::Result<()> {
        match &self.content {
            Content::Ratings(plan) => ratings(plan, out),
            Content::Samples(x, y) => samples(x, y, out),
            Content::Sequences(made) => {
                writeln!(out, "source,target")?;
                let mut pairs = made.sources.iter().zip(&made.targets);
                pairs.try_for_each(|(source, target)| writeln!(out, "{source},{target}"))
            }
        }
    }
}

/// Writes ratings block by block, so that memory does not grow with their number.
fn ratings(plan: &RatingsMaker, out: &mut (impl Write + Send)) -> io::Result<()> {
    let field = |id: Id<'_>| match id {
        Id::Text(text) => csv_field(text).into_owned(),
        id => id.to_string(),
    };
    let items: Vec<String> = plan.items().iter().map(field).collect();
    let users: Vec<String> = plan.users().iter().map(field).collect();
    let mut failed = None;
    writeln!(out, "user,item,rating")?;
    let ended = plan.for_each_block(|block| {
        for rating in block.iter() {
            let (user, item) = (&users[rating.user as usize], &items[rating.item as usize]);
            if let Err(error) = writeln!(out, "{user},{item},{}", rating.value) {
                failed = Some(error);
                return Err(Error::data("cannot write"));
            }
        }
        Ok(())
    });
    match failed {
        Some(error) => Err(error),
        None => ended.map_err(io::Error::other),
    }
}

fn samples(x: &Dense<f64>, y: &[f64], out: &mut impl Write) -> io::Result<()> {
    for at in 1..=x.n_cols() {
        write!(out, "x{at},")?;
    }
    writeln!(out, "y")?;
    for (x, y) in x.rows().zip(y) {
        for x in x {
            write!(out, "{x},")?;
        }
        writeln!(out, "{y}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_plain_data() {
        let request: MakeRequest =
            serde_json::from_str(r#"{"blobs": {"n_samples": 3, "n_features": 1}, "seed": 2}"#)
                .unwrap();
        let MakeData::Blobs(spec) = &request.data else { panic!("{request:?}") };
        assert_eq!((spec.n_samples, spec.n_centers, request.seed), (3, 3, 2));
        let made = request.make().unwrap();
        let mut text = Vec::new();
        made.write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("x1,y\n") && text.lines().count() == 4, "{text}");
        assert_eq!((made.units, made.count), ("samples", 3));
    }
    #[test]
    fn pairs_are_a_table_of_sources_and_targets() {
        let request: MakeRequest =
            serde_json::from_str(r#"{"sequences": {"count": 4, "task": "addition"}}"#).unwrap();
        let mut text = Vec::new();
        let made = request.make().unwrap();
        made.write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0] == "source,target" && lines.len() == 5 && lines[1].contains('+'),
            "{text}"
        );
        assert_eq!((made.units, made.count), ("pairs", 4));
    }
}
