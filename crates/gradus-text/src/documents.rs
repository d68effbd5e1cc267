//! A kind of data: documents.

use crate::file::DocumentsFile;
use gradus_base::random::Stream;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::{DataKind, Dataset, HoldOut, Purpose, RANDOM, Remarks};
use gradus_core::estimator::Traits;
use gradus_data::split::rows::{self, RowSplit};
use gradus_data::{Csr, Id, Ids, LIST_SEPARATOR, Sketch, TextIds};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// The classes of documents.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentClasses {
    /// The name of the class: that of its column, or `folder`.
    pub name: String,
    /// The class of each document, as an index into `labels`; of several the first.
    pub codes: Vec<u32>,
    /// Documents of several classes, with each class after their first: pairs, in the order of the documents.
    pub others: Vec<(u32, u32)>,
    /// The names of the classes, ascending.
    pub labels: Ids,
}

impl DocumentClasses {
    /// Calls `class` with every class of a document.
    pub fn each(&self, document: usize, mut class: impl FnMut(u32)) {
        class(self.codes[document]);
        let start = self.others.partition_point(|&(at, _)| (at as usize) < document);
        let others = self.others[start..].iter();
        others.take_while(|(at, _)| *at as usize == document).for_each(|&(_, code)| class(code));
    }
}

/// Documents: texts, with ids, classes and times if they have any.
#[derive(Clone, Debug, PartialEq)]
pub struct Documents {
    name: String,
    texts: TextIds,
    /// For documents that were counted elsewhere: the terms, ascending, and how often each is in each document. Their
    /// texts are empty.
    counts: Option<Arc<(TextIds, Csr<f64>)>>,
    ids: Option<TextIds>,
    classes: Option<DocumentClasses>,
    /// The place of each document in time; equal times share a place.
    times: Option<Vec<u32>>,
}

impl Documents {
    /// Documents with these texts.
    pub fn new<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Self {
        let mut list = TextIds::new();
        texts.into_iter().for_each(|text| list.push(text.as_ref()));
        let name = TEXT.to_owned();
        Self { name, texts: list, counts: None, ids: None, classes: None, times: None }
    }

    /// Documents of which only the counts of terms are known, for models that count words anyway. The terms are put
    /// in ascending order.
    ///
    /// # Shapes
    /// `counts` is documents × terms.
    ///
    /// # Errors
    /// If there is not one term for each column, a term is there twice, or a count is negative or not finite.
    pub fn counted<T: AsRef<str>>(terms: &[T], counts: Csr<f64>) -> Result<Self> {
        if terms.len() != counts.n_cols() {
            return Err(Error::Shape {
                what: "terms of counted documents".into(),
                expected: format!("{} (one for each column of the counts)", counts.n_cols()),
                got: terms.len().to_string(),
            });
        }
        if let Some(x) = counts.values().iter().find(|x| !(x.is_finite() && **x >= 0.0)) {
            return Err(Error::data(format!(
                "counts of terms must be numbers of at least 0, and one is {x}"
            )));
        }
        let mut order: Vec<u32> = (0..terms.len() as u32).collect();
        order.sort_by_key(|&at| terms[at as usize].as_ref());
        let mut list = TextIds::new();
        let mut place = vec![0u32; terms.len()];
        for (at, &from) in (0u32..).zip(&order) {
            let term = terms[from as usize].as_ref();
            if at > 0 && list.get(at as usize - 1) == term {
                return Err(Error::data(format!("the term {term:?} is there twice")));
            }
            list.push(term);
            place[from as usize] = at;
        }
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut row: Vec<(u32, f64)> = Vec::new();
        for at in 0..counts.n_rows() {
            let (columns, of_row) = counts.row(at);
            row.clear();
            row.extend(columns.iter().zip(of_row).map(|(&at, &x)| (place[at as usize], x)));
            row.sort_unstable_by_key(|&(column, _)| column);
            for same in row.chunk_by(|a, b| a.0 == b.0) {
                let sum: f64 = same.iter().map(|(_, count)| count).sum();
                if sum > 0.0 {
                    indices.push(same[0].0);
                    values.push(sum);
                }
            }
            indptr.push(indices.len());
        }
        let counts = Csr::new(terms.len(), indptr, indices, values)?;
        let documents = Self::new((0..counts.n_rows()).map(|_| ""));
        Ok(Self { counts: Some(Arc::new((list, counts))), ..documents })
    }

    /// Sets the name of the text, as a column of a table has one.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Gives each document an id.
    ///
    /// # Errors
    /// If there is not one for each document.
    pub fn with_ids<T: AsRef<str>>(mut self, ids: impl IntoIterator<Item = T>) -> Result<Self> {
        let mut list = TextIds::new();
        ids.into_iter().for_each(|id| list.push(id.as_ref()));
        self.one_each("ids", list.len())?;
        self.ids = Some(list);
        Ok(self)
    }

    /// Gives each document a class.
    ///
    /// # Errors
    /// If there is not one for each document.
    pub fn with_classes<T: AsRef<str>>(mut self, name: &str, classes: &[T]) -> Result<Self> {
        self.one_each("classes", classes.len())?;
        let ids: Vec<Id<'_>> = classes.iter().map(|class| Id::parse(class.as_ref())).collect();
        let (codes, labels) = gradus_data::numbered(&ids);
        let (name, others) = (name.to_owned(), Vec::new());
        self.classes = Some(DocumentClasses { name, codes, others, labels });
        Ok(self)
    }

    /// Gives each document one class or several; one that is there twice counts once.
    ///
    /// # Errors
    /// If there is not a list for each document, or one is empty.
    pub fn with_several_classes<T: AsRef<str>>(
        mut self,
        name: &str,
        classes: &[Vec<T>],
    ) -> Result<Self> {
        self.one_each("classes", classes.len())?;
        if let Some(at) = classes.iter().position(Vec::is_empty) {
            return Err(Error::data(format!("document {} has no class", at + 1)));
        }
        let ids: Vec<Id<'_>> =
            classes.iter().flatten().map(|class| Id::parse(class.as_ref())).collect();
        let (all, labels) = gradus_data::numbered(&ids);
        let (mut codes, mut others, mut start) = (Vec::new(), Vec::new(), 0);
        for (at, list) in (0u32..).zip(classes) {
            let of_document = &all[start..start + list.len()];
            start += list.len();
            codes.push(of_document[0]);
            for (place, &code) in of_document.iter().enumerate() {
                if !of_document[..place].contains(&code) && place > 0 {
                    others.push((at, code));
                }
            }
        }
        self.classes = Some(DocumentClasses { name: name.to_owned(), codes, others, labels });
        Ok(self)
    }

    /// Gives each document its place in time: a later one has a greater number.
    ///
    /// # Errors
    /// If there is not one for each document.
    pub fn with_times(mut self, times: Vec<u32>) -> Result<Self> {
        self.one_each("times", times.len())?;
        self.times = Some(times);
        Ok(self)
    }

    fn one_each(&self, what: &str, got: usize) -> Result<()> {
        if got == self.texts.len() {
            return Ok(());
        }
        Err(Error::Shape {
            what: format!("{what} of documents"),
            expected: format!("{} (one for each document)", self.texts.len()),
            got: got.to_string(),
        })
    }

    /// Returns the name of the text.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The texts.
    pub fn texts(&self) -> Vec<&str> {
        self.texts.iter().collect()
    }

    /// The terms and their counts, of documents that were counted elsewhere and have no texts.
    pub fn counts(&self) -> Option<(&TextIds, &Csr<f64>)> {
        self.counts.as_deref().map(|(terms, counts)| (terms, counts))
    }

    /// Refuses documents of which only counts are known.
    ///
    /// # Errors
    /// Names what needs the texts.
    pub fn need_texts(&self, what: &str) -> Result<()> {
        match self.counts {
            Some(_) => Err(Error::data(format!(
                "{what} needs the texts of documents, and only counts of their terms are there"
            ))),
            None => Ok(()),
        }
    }

    /// The ids, if they have any.
    pub fn ids(&self) -> Option<&TextIds> {
        self.ids.as_ref()
    }

    /// The classes, if they have any.
    pub fn document_classes(&self) -> Option<&DocumentClasses> {
        self.classes.as_ref()
    }

    /// The place of each document in time, if it is known.
    pub fn times(&self) -> Option<&[u32]> {
        self.times.as_deref()
    }

    /// How many documents have no text but blanks.
    pub fn n_empty(&self) -> usize {
        if let Some((_, counts)) = self.counts() {
            return counts.indptr().windows(2).filter(|pair| pair[0] == pair[1]).count();
        }
        self.texts.iter().filter(|text| text.trim().is_empty()).count()
    }

    fn selected(&self, units: &[u32]) -> Self {
        let list = |all: &TextIds| {
            let mut list = TextIds::new();
            units.iter().for_each(|&unit| list.push(all.get(unit as usize)));
            list
        };
        let numbers = |all: &[u32]| units.iter().map(|&unit| all[unit as usize]).collect();
        Self {
            name: self.name.clone(),
            texts: list(&self.texts),
            counts: self
                .counts()
                .map(|(terms, counts)| Arc::new((terms.clone(), counts.select_rows(units)))),
            ids: self.ids.as_ref().map(list),
            classes: self.classes.as_ref().map(|classes| {
                let mut others = Vec::new();
                if !classes.others.is_empty() {
                    for (at, &unit) in (0u32..).zip(units) {
                        let mut is_first = true;
                        classes.each(unit as usize, |code| {
                            if !std::mem::replace(&mut is_first, false) {
                                others.push((at, code));
                            }
                        });
                    }
                }
                let (name, labels) = (classes.name.clone(), classes.labels.clone());
                DocumentClasses { name, codes: numbers(&classes.codes), others, labels }
            }),
            times: self.times.as_deref().map(numbers),
        }
    }
}

/// The name of a text without a name.
pub(crate) const TEXT: &str = "text";

/// The way to hold out the documents that came last.
const LAST: (&str, &str) =
    ("last", "The latest documents by option `time_column`; of equal times all or none");

impl Dataset for Documents {
    fn kind(&self) -> &'static str {
        Self::NAME
    }

    fn len(&self) -> usize {
        self.texts.len()
    }

    fn describe(&self) -> String {
        let bytes = self.texts.parts().0.len();
        let classes = self.classes.as_ref().map_or(String::new(), |classes| {
            format!(", {} classes of `{}`", grouped(classes.labels.len()), classes.name)
        });
        let n = grouped(self.len());
        if let Some((terms, counts)) = self.counts() {
            let (terms, sum) = (grouped(terms.len()), counts.values().iter().sum::<f64>());
            return format!("{n} documents, {sum} counts of {terms} terms{classes}");
        }
        format!("{n} documents, {} bytes of text{classes}", grouped(bytes))
    }

    fn summary(&self) -> Map<String, Value> {
        let facts = json!({
            "documents": self.len(),
            "bytes": self.texts.parts().0.len(),
            "empty": self.n_empty(),
            "classes": self.classes.as_ref().map(|classes| classes.labels.len()),
        });
        facts.as_object().cloned().unwrap_or_default()
    }

    fn bytes(&self) -> usize {
        let counted = self.counts().map_or(0, |(_, counts)| 12 * counts.nnz());
        self.texts.parts().0.len() + 24 * self.len() + counted
    }

    fn sketch(&self) -> Sketch {
        let Some((terms, counts)) = self.counts() else {
            return Sketch::of_text(self.texts.iter());
        };
        let row = |at: usize| {
            let (columns, values) = counts.row(at);
            let term =
                |(&column, &count): (&u32, &f64)| format!("{} {count}", terms.get(column as usize));
            columns.iter().zip(values).map(term).collect::<Vec<_>>().join("\n")
        };
        let rows: Vec<String> = (0..counts.n_rows()).map(row).collect();
        Sketch::of_text(rows.iter().map(String::as_str))
    }

    fn classes(&self) -> Option<(&[u32], &Ids)> {
        self.classes.as_ref().map(|classes| (classes.codes.as_slice(), &classes.labels))
    }

    fn select(&self, units: &[u32]) -> Box<dyn Dataset> {
        Box::new(self.selected(units))
    }

    /// A JSON object a line: the id, the text, the class and the place in time, as far as they are known.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for at in 0..self.len() {
            let mut line = Map::new();
            if let Some(ids) = &self.ids {
                line.insert("id".into(), ids.get(at).into());
            }
            match self.counts() {
                // The words as often as they are counted: read again, it is counted alike.
                Some((terms, counts)) => {
                    let (columns, values) = counts.row(at);
                    let words = columns.iter().zip(values).flat_map(|(&column, &count)| {
                        std::iter::repeat_n(terms.get(column as usize), count as usize)
                    });
                    let text = words.collect::<Vec<_>>().join(" ");
                    line.insert(self.name.clone(), text.into());
                }
                None => {
                    line.insert(self.name.clone(), self.texts.get(at).into());
                }
            }
            if let Some(classes) = &self.classes {
                let mut labels = Vec::new();
                classes.each(at, |code| labels.push(classes.labels.get(code as usize).to_string()));
                line.insert(classes.name.clone(), labels.join(&LIST_SEPARATOR.to_string()).into());
            }
            if let Some(times) = &self.times {
                line.insert("time".into(), times[at].into());
            }
            writeln!(out, "{}", Value::Object(line))?;
        }
        Ok(())
    }

    fn hold_out(&self, scheme: &str, amount: f64, seed: u64) -> Result<HoldOut> {
        let split = match scheme {
            name if name == RANDOM.0 => match &self.classes {
                Some(classes) => rows::stratified_holdout(&classes.codes, amount, seed)?.0,
                None => rows::holdout(self.len(), amount, seed)?,
            },
            name if name == LAST.0 => {
                let times = self.times().ok_or_else(|| {
                    Error::data(
                        "the documents have no times: name their column with option `time_column`",
                    )
                })?;
                last(times, amount)?
            }
            other => {
                return Err(Error::UnknownName {
                    what: "split",
                    name: other.to_owned(),
                    known: format!("{}, {}", RANDOM.0, LAST.0),
                });
            }
        };
        Ok(HoldOut { train: self.select(&split.train), held_out: self.select(&split.test) })
    }
}

/// Holds out the latest share; documents of one time stay together.
fn last(times: &[u32], amount: f64) -> Result<RowSplit> {
    if !(amount > 0.0 && amount < 1.0) {
        return Err(Error::parameter("share", amount, "must be a number between 0 and 1"));
    }
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let n_held = ((times.len() as f64 * amount).round() as usize).clamp(1, times.len().max(1));
    let first = sorted.get(times.len() - n_held.min(times.len())).copied().unwrap_or(0);
    let (test, train): (Vec<u32>, Vec<u32>) =
        (0..times.len() as u32).partition(|&unit| times[unit as usize] >= first);
    if train.is_empty() || test.is_empty() {
        let rule = "leaves a part empty: there are too few different times for it";
        return Err(Error::parameter("share", amount, rule));
    }
    Ok(RowSplit { train, test })
}

impl DataKind for Documents {
    const NAME: &'static str = "documents";

    type Options = DocumentsFile;

    const SCHEMES: &'static [(&'static str, &'static str)] = &[RANDOM, LAST];

    fn read(
        path: &Path,
        options: &Self::Options,
        purpose: &Purpose<'_>,
        remarks: &mut Remarks<'_>,
    ) -> Result<Self> {
        // A model that writes texts learns where lines end.
        if purpose.traits.can(Capability::Generate) && options.is_plain_text(path) {
            return options.whole(path, remarks);
        }
        options.read(path, remarks)
    }

    fn is_in_parts(path: &Path, options: &Self::Options) -> bool {
        options.is_in_parts(path)
    }

    fn read_parts(
        path: &Path,
        options: &Self::Options,
        take: &mut dyn FnMut(Self) -> Result<bool>,
    ) -> Result<()> {
        options.read_parts(path, take)
    }

    /// Documents of two classes, each with frequent words of its own.
    fn example(n: usize, seed: u64, _traits: &Traits) -> Result<Self> {
        const COMMON: [&str; 6] = ["the", "of", "and", "to", "is", "in"];
        const OF_CLASS: [[&str; 5]; 2] = [
            ["meeting", "budget", "report", "minutes", "agenda"],
            ["goal", "match", "season", "keeper", "league"],
        ];
        let mut stream = Stream::new(seed, "documents.example", 0);
        let (mut texts, mut classes) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for _ in 0..n {
            let class = stream.below(2) as usize;
            let words = (0..5 + stream.below(20)).map(|_| match stream.below(10) {
                0..6 => COMMON[stream.below(6) as usize],
                6..9 => OF_CLASS[class][stream.below(5) as usize],
                _ => OF_CLASS[1 - class][stream.below(5) as usize],
            });
            texts.push(words.collect::<Vec<_>>().join(" "));
            classes.push(["office", "sport"][class]);
        }
        Self::new(texts).with_classes("label", &classes)
    }
}
