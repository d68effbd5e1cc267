//! Models as fastText's files, and back.

use super::FastText;
use super::binary::{self, Args, Binary, Head, Source, kind, loss};
use super::labels::FastTextLoss;
use super::model::{FastTextModel, Weights};
use crate::skipgram::{Cbow, Skipgram};
use crate::vectors::{Subwords, WordVectors};
use gradus_base::text::grouped;
use gradus_base::{Error, Result, parallel};
use gradus_core::dataset::Remarks;
use gradus_core::embed::Embed as _;
use gradus_core::estimator::{AnyFitted, Fit, Fitted, Job, Model};
use gradus_core::iterate::{LoopOptions, direct};
use gradus_core::params::record;
use gradus_core::predict::Predict as _;
use gradus_core::report::Report;
use gradus_data::{BagOptions, CharNgrams, Id, LINE_END, TextBag, TextIds, TokenRule};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, BufReader, Read as _, Write};
use std::path::Path;

/// The prefix of labels in fastText's files.
pub(crate) const LABEL: &str = "__label__";

fn ngrams_of(args: &Args) -> CharNgrams {
    CharNgrams {
        min_n: args.minn.max(1) as usize,
        max_n: args.maxn as usize,
        n_buckets: args.bucket as usize,
    }
}

/// The vectors of the words of a file, with those of their n-grams.
///
/// # Errors
/// If it has no words.
pub(crate) fn word_vectors(
    path: &Path,
    binary: Binary,
    remarks: &mut Remarks<'_>,
) -> Result<WordVectors> {
    let Binary { args, words, kept, inputs, outputs, .. } = binary;
    let k = args.dim as usize;
    let mut values = inputs.values(k);
    let grams = values.split_off(words.len() * k);
    let ngrams = ngrams_of(&args);
    let subwords = match ngrams.max_n > 0 && ngrams.n_buckets > 0 {
        true => {
            let (buckets, grams) = match kept {
                None => (None, grams),
                Some(kept) => {
                    let mut order: Vec<usize> = (0..kept.len()).collect();
                    order.sort_unstable_by_key(|&at| kept[at]);
                    let rows = order.iter().flat_map(|&at| &grams[at * k..(at + 1) * k]);
                    (Some(order.iter().map(|&at| kept[at]).collect()), rows.copied().collect())
                }
            };
            let made = Subwords::new(ngrams, buckets, k, grams);
            Some(made.map_err(|error| Error::format(path, error.to_string()))?)
        }
        false => None,
    };
    let known: Vec<usize> = (0..words.len()).filter(|&at| words[at].0.is_some()).collect();
    if known.len() < words.len() {
        let n = grouped(words.len() - known.len());
        remarks.push(format!("{}: {n} words are not UTF-8 and left out", path.display()));
    }
    let list: Vec<&str> = known.iter().filter_map(|&at| words[at].0.as_deref()).collect();
    let counts: Vec<u64> = known.iter().map(|&at| words[at].1).collect();
    let vectors = parallel::map_below(known.len(), 256, |at| {
        let mut vector = values[known[at] * k..(known[at] + 1) * k].to_vec();
        if let Some(subwords) = &subwords {
            subwords.complete(list[at], &mut vector);
        }
        vector
    });
    let vectors: Vec<f32> = vectors.into_iter().flatten().collect();
    let context: Option<Vec<f32>> = (args.model != kind::SUPERVISED).then(|| {
        let outputs = outputs.values(k);
        known.iter().flat_map(|&at| &outputs[at * k..(at + 1) * k]).copied().collect()
    });
    let made = WordVectors::new(&list, Some(&counts), &vectors, context.as_deref());
    let made = made.map_err(|error| Error::format(path, error.to_string()))?;
    match subwords {
        Some(subwords) => made.with_subwords(subwords),
        None => Ok(made),
    }
}

/// The classifier of a file.
fn classifier(path: &Path, binary: Binary) -> Result<FastTextModel> {
    let Binary { args, words, labels, kept, inputs, outputs } = binary;
    let bad = |error: &dyn std::fmt::Display| {
        Error::format(path, format!("is no model of fastText that can be read: {error}"))
    };
    let k = args.dim as usize;
    let options = BagOptions {
        tokens: TokenRule::Blanks,
        lowercase: false,
        word_ngrams: args.word_ngrams.max(1) as usize,
        chars: ngrams_of(&args),
        leaves_out: kept.is_some(),
    };
    let mut list = TextIds::new();
    for (at, (word, _)) in words.iter().enumerate() {
        match word {
            Some(word) => list.push(word),
            // No text has it.
            None => list.push(&format!("\u{fffd}{at}")),
        }
    }
    let counts = words.iter().map(|(_, count)| *count).collect();
    let has_buckets = options.has_buckets();
    let kept = kept.filter(|_| has_buckets);
    let bag = TextBag::new(options, list, counts, kept).map_err(|error| bad(&error))?;
    let weights = match inputs {
        binary::Weights::Dense { mut values, .. } => {
            values.truncate(bag.n_known() * k);
            Weights::Dense(values)
        }
        binary::Weights::Quantised(quantised) => Weights::Quantised(quantised),
    };
    let names: Vec<Id<'_>> = labels
        .iter()
        .map(|(label, _)| Id::parse(label.strip_prefix(LABEL).unwrap_or(label)))
        .collect();
    let (ranking, ids) = gradus_data::numbered(&names);
    let loss = match args.loss {
        loss::HS => FastTextLoss::Hs,
        loss::SOFTMAX => FastTextLoss::Softmax,
        // With negative samples each class has a logistic function of its own, too.
        loss::OVA | loss::NS => FastTextLoss::Ova,
        other => return Err(bad(&format!("loss {other} is unknown"))),
    };
    let counts = labels.iter().map(|(_, count)| *count).collect();
    let (text, target) = (("text", bag), ("label", ids));
    let vectors = (k, outputs.values(k));
    FastTextModel::new(text, target, loss, weights, vectors, (ranking, counts))
        .map_err(|error| bad(&error))
}

fn fitted<P: Fit>(params: P, model: P::Model, args: &Args) -> Result<AnyFitted> {
    let settings =
        LoopOptions { model: P::NAME, params: record(&params), ..LoopOptions::default() };
    let job: Job<'_, P::Data> = Job::default();
    let (model, mut report): (P::Model, Report) =
        direct(&settings, &job, || Ok((model, 0.0, None)))?;
    report.notes.push(format!("read from a file of fastText, of {} epochs", args.epoch));
    Ok(Fitted { params, model, report }.into_any())
}

/// Whether a file begins as binary models of fastText do.
pub fn is_fasttext(path: &Path) -> bool {
    let mut start = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == binary::START
}

/// Opens a model of fastText (`.bin`, `.ftz`) as one of gradus; `None` of a file that is none.
pub fn open_fasttext(path: &Path) -> Option<Result<AnyFitted>> {
    is_fasttext(path).then(|| open(path))
}

fn open(path: &Path) -> Result<AnyFitted> {
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    let found = binary::read(path, &mut BufReader::with_capacity(1 << 20, file))?;
    let args = found.args;
    let whole = |x: i32| x.max(1) as usize;
    let ngrams = ngrams_of(&args);
    if args.model == kind::SUPERVISED {
        let params = FastText {
            dimension: whole(args.dim),
            word_ngrams: whole(args.word_ngrams),
            max_n: ngrams.max_n,
            min_n: ngrams.min_n,
            n_buckets: ngrams.n_buckets.max(1),
            min_count: whole(args.min_count) as u64,
            lowercase: false,
            tokens: TokenRule::Blanks,
            max_iter: Some(whole(args.epoch)),
            ..FastText::default()
        };
        let model = classifier(path, found)?;
        let params = FastText { loss: model.loss, quantize: model.is_quantised(), ..params };
        return fitted(params, model, &args);
    }
    let model = word_vectors(path, found, &mut Remarks::ignored())?;
    macro_rules! params {
        ($kind:ident) => {
            $kind {
                dimension: whole(args.dim),
                window: whole(args.ws),
                negatives: whole(args.neg),
                subsample: args.t.clamp(0.0, 1.0),
                min_count: whole(args.min_count) as u64,
                max_n: ngrams.max_n,
                min_n: ngrams.min_n,
                n_buckets: ngrams.n_buckets.max(1),
                lowercase: false,
                tokens: TokenRule::Blanks,
                max_iter: Some(whole(args.epoch)),
                ..$kind::default()
            }
        };
    }
    match args.model {
        kind::SKIPGRAM => fitted(params!(Skipgram), model, &args),
        kind::CBOW => fitted(params!(Cbow), model, &args),
        other => {
            Err(Error::format(path, format!("is a model {other} of fastText, which is unknown")))
        }
    }
}

/// The arguments of a model by its parameters, where it has them.
fn args_of(params: &Map<String, Value>, dimension: usize, ngrams: Option<&CharNgrams>) -> Args {
    let number = |name: &str, default: i32| {
        let given = params.get(name).and_then(Value::as_i64);
        given.and_then(|x| i32::try_from(x).ok()).unwrap_or(default)
    };
    let of = |get: fn(&CharNgrams) -> usize| ngrams.map_or(0, |ngrams| get(ngrams) as i32);
    Args {
        dim: dimension as i32,
        ws: number("window", 5),
        epoch: number("max_iter", 5),
        min_count: number("min_count", 1),
        neg: number("negatives", 5),
        word_ngrams: 1,
        loss: loss::NS,
        model: kind::SKIPGRAM,
        bucket: of(|ngrams| ngrams.n_buckets),
        minn: of(|ngrams| ngrams.min_n),
        maxn: of(|ngrams| ngrams.max_n),
        lr_update_rate: 100,
        t: params.get("subsample").and_then(Value::as_f64).unwrap_or(1e-4),
    }
}

/// Writes a model as fastText's binary file, which its tools and gensim open: a classifier `fasttext`, or vectors of words, whose
/// n-grams of characters go along. The outputs of vectors of words are zeros unless the model keeps them (`keep_context`).
///
/// # Errors
/// If the model is neither, a word or a class has a blank in it, or those of the writer.
pub fn export_fasttext(
    model: &dyn Model,
    (name, params): (&str, &Map<String, Value>),
    out: &mut dyn Write,
) -> Result<io::Result<()>> {
    let any: &dyn std::any::Any = model;
    if let Some(model) = any.downcast_ref::<FastTextModel>() {
        return write_classifier(model, params, out);
    }
    let Some(model) = any.downcast_ref::<WordVectors>() else {
        return Err(Error::data(format!(
            "a model `{name}` cannot be written as a file of fastText: it is no classifier `fasttext`, and has no \
             vectors of words"
        )));
    };
    model.check_export()?;
    let args = args_of(params, model.dimension(), model.subwords().map(Subwords::ngrams));
    let args = Args { model: if name == "cbow" { kind::CBOW } else { kind::SKIPGRAM }, ..args };
    let ranking = model.ranking();
    let count = |at: usize| model.counts().map_or(1, |counts| counts[at]);
    let n = model.len();
    let inputs = |at: usize, row: &mut [f32]| match at.checked_sub(n) {
        None => row.copy_from_slice(&model.own(ranking[at] as usize)),
        Some(bucket) => {
            let found = model.subwords().and_then(|subwords| subwords.row(bucket as u32));
            if let Some(found) = found {
                row.copy_from_slice(found);
            }
        }
    };
    let outputs = |at: usize, row: &mut [f32]| {
        if let Some(context) = model.context(ranking[at] as usize) {
            row.copy_from_slice(context);
        }
    };
    let mut counted = ranking.iter().map(|&at| (model.word(at as usize), count(at as usize)));
    let head = Head {
        args,
        words: &mut counted,
        n_words: n,
        labels: &[],
        n_tokens: (0..n).map(count).sum(),
        kept: None,
    };
    let n_rows = n + args.bucket as usize;
    Ok(binary::write(
        head,
        &Source::Dense { n_rows, row: &inputs },
        &Source::Dense { n_rows: n, row: &outputs },
        out,
    ))
}

fn write_classifier(
    model: &FastTextModel,
    params: &Map<String, Value>,
    out: &mut dyn Write,
) -> Result<io::Result<()>> {
    let (bag, k) = (model.bag(), model.dimension());
    let options = bag.options();
    let args = Args {
        word_ngrams: options.word_ngrams as i32,
        loss: match model.loss {
            FastTextLoss::Hs => loss::HS,
            FastTextLoss::Softmax => loss::SOFTMAX,
            FastTextLoss::Ova => loss::OVA,
        },
        model: kind::SUPERVISED,
        ..args_of(params, k, options.has_buckets().then_some(&options.chars))
    };
    let outputs = model.outputs();
    let Some(ids) = outputs.labels() else { return Err(Error::data("it predicts no classes")) };
    let mut labels = Vec::with_capacity(ids.len());
    for (&at, &count) in model.ranking.iter().zip(&model.counts) {
        let label = ids.get(at as usize).to_string();
        if label.is_empty() || label.contains(|c: char| c.is_whitespace() || c == '\0') {
            return Err(Error::data(format!(
                "the class {label:?} has a blank in it or is empty, which a file of fastText cannot hold"
            )));
        }
        labels.push((format!("{LABEL}{label}"), count));
    }
    let n_words = bag.words().len();
    let words = bag.words().iter();
    if let Some(bad) = bag.words().iter().find(|word| word.contains(['\0', ' ', '\n', '\t'])) {
        return Err(Error::data(format!("the word {bad:?} cannot be in a file of fastText")));
    }
    let mut order: Vec<(u32, usize)> = match bag.kept() {
        Some(kept) => kept.iter().copied().zip(n_words..).collect(),
        None => Vec::new(),
    };
    order.sort_unstable();
    let row = |at: usize, row: &mut [f32]| match at.checked_sub(n_words) {
        Some(bucket) if bag.kept().is_some() => {
            let found = order.binary_search_by_key(&(bucket as u32), |&(bucket, _)| bucket);
            if let Ok(place) = found {
                model.add(order[place].1, 1.0, row);
            }
        }
        _ => model.add(at, 1.0, row),
    };
    let of_class =
        |at: usize, row: &mut [f32]| row.copy_from_slice(&model.classes[at * k..(at + 1) * k]);
    // Documents end in a word of their own; without it there are no more words than counted.
    let n_tokens = bag.counts().iter().sum::<u64>() + u64::from(bag.find(LINE_END).is_none());
    let mut counted = words.zip(bag.counts().iter().copied());
    let head = Head {
        args,
        words: &mut counted,
        n_words,
        labels: &labels,
        n_tokens,
        kept: bag.kept().filter(|_| model.is_quantised()),
    };
    let inputs = match &model.weights {
        Weights::Quantised(quantised) => Source::Quantised(quantised),
        Weights::Dense(_) => {
            let n_buckets = if options.has_buckets() { options.chars.n_buckets } else { 0 };
            Source::Dense { n_rows: n_words + n_buckets, row: &row }
        }
    };
    let outputs = Source::Dense { n_rows: labels.len(), row: &of_class };
    Ok(binary::write(head, &inputs, &outputs, out))
}
