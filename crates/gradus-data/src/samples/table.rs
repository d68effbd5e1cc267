//! Samples from a table.

use super::{Samples, Target, numbered};
use crate::{Dense, EncodeOptions, Encoded, Fill, Id, Inputs, Missing, Table};
use gradus_base::{Error, Result};
use std::borrow::Cow;

/// The roles of the columns of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SamplesOptions {
    /// The columns to predict; none if there is nothing to predict.
    pub target: Vec<String>,
    /// Whether the target is a class; otherwise it is a number.
    pub classes: bool,
    /// The column that says how much a sample counts.
    pub weight: Option<String>,
    /// How the other columns become numbers.
    pub encode: EncodeOptions,
}

impl Samples {
    /// Samples from a table, and what had to be done for it: the inputs are learned from it unless there
    /// are some already, those of a model.
    ///
    /// # Errors
    /// If a column is absent, or a value is missing or of the wrong kind.
    pub fn from_table(
        table: &Table,
        options: &SamplesOptions,
        inputs: Option<&Inputs>,
    ) -> Result<(Self, Encoded)> {
        let mut leave_out = options.target.clone();
        leave_out.extend(options.weight.iter().cloned());
        let without_target = |encode: &EncodeOptions| {
            let mut encode = encode.clone();
            encode.leave_out.extend(leave_out.iter().cloned());
            encode
        };
        let n_rows = table.n_rows();
        let table = match (options.encode.fill, inputs) {
            (Fill::Drop, None) => {
                let left_out = |name: &String| options.encode.leave_out.contains(name);
                let mut used = table.columns().iter().filter(|(name, _)| !left_out(name));
                let empty = used.find(|(_, column)| column.n_missing() == n_rows);
                if let Some((name, _)) = empty.filter(|_| n_rows > 0) {
                    return Err(Error::data(format!("column `{name}` has no value: leave it out")));
                }
                Cow::Owned(table.select_rows(&table.complete_rows(&options.encode.leave_out)))
            }
            (Fill::Drop, Some(inputs)) => {
                let mut rows = inputs.complete_rows(table)?;
                for name in &leave_out {
                    let column = table.column(name)?;
                    rows.retain(|&row| !column.is_missing(row as usize));
                }
                Cow::Owned(table.select_rows(&rows))
            }
            _ => Cow::Borrowed(table),
        };
        let table = table.as_ref();
        let (inputs, features, mut encoded) = match inputs {
            None => Inputs::learn_and_encode(table, &without_target(&options.encode))?,
            Some(inputs @ Inputs::Columns(_)) => {
                let (features, encoded) = inputs.encode(table)?;
                (inputs.clone(), features, encoded)
            }
            // Without names, all columns but the target and the weight are features.
            Some(inputs) => {
                let named = Inputs::learn(table, &without_target(&EncodeOptions::default()))?;
                inputs.check_width(named.n_features())?;
                let (features, encoded) = named.encode(table)?;
                (inputs.clone(), features, encoded)
            }
        };
        encoded.dropped = n_rows - table.n_rows();
        let target = target(table, options)?;
        let mut samples = match inputs.keeps_missing() {
            true => Self::with_missing(features)?.with_target(target)?,
            false => Self::new(features, target)?,
        };
        samples = samples.with_inputs(inputs)?.with_target_names(options.target.clone())?;
        if let Some(weight) = &options.weight {
            samples = samples.with_weights(table.numbers(weight, Missing::Refuse)?.into_owned())?;
        }
        Ok((samples, encoded))
    }
}

fn target(table: &Table, options: &SamplesOptions) -> Result<Target> {
    if options.target.is_empty() && !options.classes {
        return Ok(Target::Values(Dense::new(table.n_rows(), 0, Vec::new())?));
    }
    if !options.classes {
        let names: Vec<&str> = options.target.iter().map(String::as_str).collect();
        return Ok(Target::Values(table.to_dense(&names, Missing::Refuse)?));
    }
    let [name] = options.target.as_slice() else {
        return Err(Error::parameter(
            "target",
            options.target.join(", "),
            "must be one column for a model that predicts a class",
        ));
    };
    let column = table.column(name)?;
    if let Some(row) = (0..column.len()).find(|&row| column.is_missing(row)) {
        return Err(table.missing(row, name));
    }
    // Whole numbers print without a point: 0.0 and 1.0 are the classes 0 and 1.
    let words: Vec<Cow<'_, str>> = (0..column.len()).filter_map(|row| column.text(row)).collect();
    let ids: Vec<Id<'_>> = words.iter().map(|word| Id::parse(word)).collect();
    let (codes, labels) = numbered(&ids);
    Ok(Target::Classes { codes, labels })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, Ids};

    #[test]
    fn columns_take_their_places() {
        let text = "w,price,size,colour\n1,10,1,red\n2,20,2,blue\n";
        let table = Table::from_bytes(text.as_bytes(), Format::Csv).unwrap();
        let options = SamplesOptions {
            target: vec!["price".into()],
            weight: Some("w".into()),
            ..SamplesOptions::default()
        };
        let (samples, _) = Samples::from_table(&table, &options, None).unwrap();
        assert_eq!(samples.inputs().feature_names(), ["size", "colour=blue", "colour=red"]);
        assert_eq!(samples.values().unwrap().values(), [10.0, 20.0]);
        assert_eq!(samples.weights(), Some(&[1.0, 2.0][..]));
        assert_eq!(samples.target_names(), ["price"]);
        let classes = SamplesOptions { target: vec!["colour".into()], classes: true, ..options };
        let (samples, _) = Samples::from_table(&table, &classes, None).unwrap();
        assert_eq!(samples.classes().unwrap().0, [1, 0]);
        assert_eq!(samples.inputs().feature_names(), ["price", "size"]);
    }

    #[test]
    fn whole_floats_are_whole_classes() {
        let table = Table::from_bytes(b"x,y\n1,0.0\n2,1.0\n3,0.0\n", Format::Csv).unwrap();
        let options =
            SamplesOptions { target: vec!["y".into()], classes: true, ..Default::default() };
        let (samples, _) = Samples::from_table(&table, &options, None).unwrap();
        assert_eq!(samples.classes().unwrap(), (&[0, 1, 0][..], &Ids::Int(vec![0, 1])));
    }
}
