//! A kind of data: samples with groups, which are no features.

use super::SensitiveGroups;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use gradus_core::dataset::{DataKind, Dataset, Purpose, Remarks, SamplesFile};
use gradus_core::estimator::Traits;
use gradus_core::params::Params;
use gradus_data::{Dense, Id, Ids, Samples, Sketch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::path::Path;

/// Samples, and the group of each by one or more sensitive attributes. Groups are no features.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupedSamples {
    samples: Samples,
    attributes: Vec<SensitiveGroups>,
    groups: SensitiveGroups,
}

impl GroupedSamples {
    /// Samples with their groups; of several attributes the intersections are the groups.
    ///
    /// # Errors
    /// If there is no attribute, or one has not a group for each sample.
    pub fn new(samples: Samples, attributes: Vec<SensitiveGroups>) -> Result<Self> {
        for attribute in &attributes {
            attribute.check_len(samples.len())?;
        }
        let groups = SensitiveGroups::crossed(&attributes)?;
        Ok(Self { samples, attributes, groups })
    }

    /// The samples.
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// The groups of each attribute.
    pub fn attributes(&self) -> &[SensitiveGroups] {
        &self.attributes
    }

    /// The groups: the intersections of all attributes.
    pub fn groups(&self) -> &SensitiveGroups {
        &self.groups
    }
}

/// How samples with groups are read: as samples are, and which columns hold the groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GroupedFile {
    /// Columns of the sensitive attributes, by name or position; they are not taken as features. The intersections of
    /// several attributes are the groups.
    pub group: Vec<String>,
    /// How the samples are read.
    #[serde(flatten)]
    pub samples: SamplesFile,
}

impl Params for GroupedFile {
    fn check_together(&self) -> Result<()> {
        self.samples.check_together()
    }
}

impl Dataset for GroupedSamples {
    fn kind(&self) -> &'static str {
        Self::NAME
    }

    fn len(&self) -> usize {
        self.samples.len()
    }

    fn describe(&self) -> String {
        let (groups, n) = (self.groups.attribute(), self.groups.n_groups());
        format!("{}, {n} groups of {groups}", self.samples.describe())
    }

    fn summary(&self) -> Map<String, Value> {
        let mut facts = self.samples.summary();
        facts.insert("groups".into(), self.groups.n_groups().into());
        facts
    }

    fn bytes(&self) -> usize {
        Dataset::bytes(&self.samples) + 4 * (1 + self.attributes.len()) * self.len()
    }

    fn sketch(&self) -> Sketch {
        let dense = self.samples.features().to_dense();
        let classes = self.samples.classes().ok();
        Sketch::of_text(self.groups.codes().iter().enumerate().map(|(row, &group)| {
            let mut bytes: Vec<u8> = dense.row(row).iter().flat_map(|x| x.to_le_bytes()).collect();
            if let Some((codes, labels)) = classes {
                bytes.extend(labels.get(codes[row] as usize).to_string().into_bytes());
            }
            bytes.push(0);
            bytes.extend(self.groups.names()[group as usize].bytes());
            bytes
        }))
    }

    fn classes(&self) -> Option<(&[u32], &Ids)> {
        self.samples.classes().ok()
    }

    fn has_missing(&self) -> bool {
        self.samples.has_missing()
    }

    fn select(&self, units: &[u32]) -> Box<dyn Dataset> {
        Box::new(Self {
            samples: self.samples.select_rows(units),
            attributes: self.attributes.iter().map(|attribute| attribute.select(units)).collect(),
            groups: self.groups.select(units),
        })
    }

    /// The table of the samples, with a column for each attribute in front.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut text = Vec::new();
        self.samples.write(&mut text)?;
        let text = String::from_utf8(text).map_err(io::Error::other)?;
        for (at, line) in text.lines().enumerate() {
            for attribute in &self.attributes {
                let cell = match at {
                    0 => attribute.attribute(),
                    _ => &attribute.names()[attribute.codes()[at - 1] as usize],
                };
                write!(out, "{},", gradus_base::text::csv_field(cell))?;
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

impl DataKind for GroupedSamples {
    const NAME: &'static str = "grouped samples";

    type Options = GroupedFile;

    fn read(
        path: &Path,
        options: &Self::Options,
        purpose: &Purpose<'_>,
        remarks: &mut Remarks<'_>,
    ) -> Result<Self> {
        if options.group.is_empty() {
            // A file that cannot be read is the first thing to say.
            let table = options.samples.table.head(path)?;
            return Err(Error::data(format!(
                "{}: which columns hold the groups? Name them with option `group`; there are {}",
                path.display(),
                table.names().join(", ")
            )));
        }
        let like = purpose.like.map(|like| like.of_kind::<Self>()).transpose()?;
        let inputs = like.map(|like| like.samples.inputs());
        let (samples, columns) =
            options.samples.read_with_columns(path, purpose, (inputs, &options.group), remarks)?;
        let mut attributes = Vec::new();
        for (name, column) in &columns {
            attributes.push(SensitiveGroups::from_column(name, column)?);
        }
        Self::new(samples, attributes)
    }

    /// Two groups that take turns; the class depends on two features, and a little on the group.
    fn example(n: usize, seed: u64, _traits: &Traits) -> Result<Self> {
        let mut stream = Stream::new(seed, "grouped.example", 0);
        let x = Dense::from_fn(n, 3, |_, _| stream.normal());
        let classes: Vec<i64> = (0..n)
            .map(|row| {
                let group = if row % 2 == 0 { 0.15 } else { -0.15 };
                let score = 2.0 * x[(row, 0)] - x[(row, 1)] + group + 0.2 * stream.normal();
                i64::from(score > 0.0)
            })
            .collect();
        let samples = Samples::classification(x, classes.into_iter().map(Id::Int))?;
        let words: Vec<&str> = (0..n).map(|row| ["a", "b"][row % 2]).collect();
        Self::new(samples, vec![SensitiveGroups::from_words("group", &words)?])
    }
}
