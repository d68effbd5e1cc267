use super::*;
use crate::fasttext::{export_fasttext, open_fasttext, word_vectors};
use crate::{
    Documents, FastText, FastTextLoss, FastTextModel, Skipgram, WordVectors, read_vectors,
};
use gradus_core::dataset::Remarks;
use gradus_core::embed::Embed as _;
use gradus_core::estimator::{AnyFitted, Fit as _};
use gradus_data::fasttext_hash;
use std::io::Cursor;

/// A file, part by part.
#[derive(Clone, Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn i32(mut self, values: &[i32]) -> Self {
        values.iter().for_each(|x| self.0.extend(x.to_le_bytes()));
        self
    }
    fn i64(mut self, values: &[i64]) -> Self {
        values.iter().for_each(|x| self.0.extend(x.to_le_bytes()));
        self
    }
    fn f32(mut self, values: &[f32]) -> Self {
        values.iter().for_each(|x| self.0.extend(x.to_le_bytes()));
        self
    }
    fn f64(mut self, value: f64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }
    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
    fn entry(self, word: &[u8], count: i64, kind: u8) -> Self {
        self.bytes(word).bytes(&[0]).i64(&[count]).bytes(&[kind])
    }
}

/// Skip-gram vectors as fastText writes them: two words and four buckets, of two coordinates.
fn skipgram() -> Bytes {
    Bytes::default()
        .i32(&[793_712_314, 12, 2, 5, 5, 1, 5, 1, 2, 2, 4, 3, 3, 100])
        .f64(1e-4)
        .i32(&[2, 2, 0])
        .i64(&[7, -1])
        .entry(b"ab", 4, 0)
        .entry("é".as_bytes(), 3, 0)
        .bytes(&[0])
        .i64(&[6, 2])
        .f32(&[1.0, 2.0, 3.0, 4.0, 10.0, 0.0, 20.0, 0.0, 30.0, 0.0, 40.0, 0.0])
        .bytes(&[0])
        .i64(&[2, 2])
        .f32(&[0.5, 0.25, 0.125, 1.0])
}

fn parse(bytes: &[u8]) -> Result<Binary> {
    read(Path::new("model.bin"), &mut Cursor::new(bytes))
}

fn words(bytes: &[u8]) -> WordVectors {
    word_vectors(Path::new("model.bin"), parse(bytes).unwrap(), &mut Remarks::ignored()).unwrap()
}

#[test]
fn vectors_of_words_are_means_of_their_rows() {
    let model = words(&skipgram().0);
    // The n-grams of three characters of <ab>.
    let of = |gram: &str| 10.0 * (1 + fasttext_hash(gram.as_bytes()) % 4) as f32;
    let want = [(1.0 + of("<ab") + of("ab>")) / 3.0, 2.0 / 3.0];
    let ab = model.vector(model.find("ab").unwrap());
    assert!((ab[0] - want[0]).abs() < 1e-5 && (ab[1] - want[1]).abs() < 1e-6, "{ab:?} {want:?}");
    let accent = model.vector(model.find("é").unwrap());
    assert!((accent[0] - (3.0 + of("<é>")) / 2.0).abs() < 1e-5, "{accent:?}");
    assert_eq!(model.counts(), Some(&[4, 3][..]));
    assert_eq!(model.context(0), Some(&[0.5, 0.25][..]));
    // An unknown word: its n-grams alone.
    let unknown = model.vector_of("abc").unwrap();
    let want = (of("<ab") + of("abc") + of("bc>")) / 3.0;
    assert!((unknown[0] - want).abs() < 1e-5, "{unknown:?} {want}");
    assert!(model.knows("abc") && !model.names_it("abc") && model.find("abc").is_err());
    assert!((model.similarity("abc", "ab").unwrap() - 1.0).abs() < 0.1);
}

fn export(fitted: &AnyFitted) -> Vec<u8> {
    let mut out = Vec::new();
    let named = (fitted.kind, &fitted.params);
    export_fasttext(fitted.model.as_ref(), named, &mut out).unwrap().unwrap();
    out
}

#[test]
fn what_is_read_is_written_byte_by_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.bin");
    std::fs::write(&path, skipgram().0).unwrap();
    let fitted = open_fasttext(&path).unwrap().unwrap();
    assert_eq!(fitted.kind, "skipgram");
    let (got, want) = (parse(&export(&fitted)).unwrap(), parse(&skipgram().0).unwrap());
    assert_eq!((got.args, &got.words, &got.outputs), (want.args, &want.words, &want.outputs));
    for (a, b) in got.inputs.values(2).iter().zip(want.inputs.values(2)) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
    std::fs::write(&path, b"no model").unwrap();
    assert!(open_fasttext(&path).is_none());
    // As a file of vectors, too.
    std::fs::write(&path, skipgram().0).unwrap();
    let read = read_vectors(&path, None, &mut Remarks::ignored()).unwrap();
    assert!(read.subwords().is_some());
}

#[test]
fn a_fit_with_ngrams_goes_to_a_file_and_back() {
    let texts = ["the singer sings a song", "the dancer dances", "a singer and a dancer"];
    let documents = Documents::new(texts.repeat(30));
    let params = Skipgram::new().dimension(6).max_n(4).n_buckets(50).keep_context(true);
    let fitted = params.fit(&documents).unwrap();
    let model = fitted.model.clone();
    let unknown = model.vector_of("singers").unwrap().into_owned();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.bin");
    std::fs::write(&path, export(&fitted.into_any())).unwrap();
    let back = read_vectors(&path, None, &mut Remarks::ignored()).unwrap();
    assert_eq!(back.ranking(), model.ranking());
    for at in 0..model.len() {
        assert_eq!(back.word(at), model.word(at));
        for (a, b) in back.vector(at).iter().zip(model.vector(at)) {
            assert!((a - b).abs() < 1e-6);
        }
        assert_eq!(back.context(at), model.context(at));
    }
    for (a, b) in back.vector_of("singers").unwrap().iter().zip(&unknown) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
}

#[test]
fn classifiers_go_to_files_and_back() {
    let texts = ["cheap pills now", "the meeting is at ten", "cheap watches", "minutes of it"];
    let labels = ["spam", "ham", "spam", "other"];
    let documents =
        Documents::new(texts.repeat(9)).with_classes("kind", &labels.repeat(9)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for loss in [FastTextLoss::Softmax, FastTextLoss::Ova, FastTextLoss::Hs] {
        for quantize in [false, true] {
            let params = FastText::new().dimension(6).loss(loss).n_buckets(70).max_n(3);
            let fitted = params.quantize(quantize).max_iter(4).fit(&documents).unwrap();
            let model = fitted.model.clone();
            let path = folder.path().join("model.ftz");
            std::fs::write(&path, export(&fitted.into_any())).unwrap();
            let back = open_fasttext(&path).unwrap().unwrap();
            let any: &dyn std::any::Any = back.model.as_ref();
            let back: &FastTextModel = any.downcast_ref().unwrap();
            assert_eq!(back.is_quantised(), quantize);
            let asked = ["cheap meeting", "at ten of it", "zebra", ""];
            for (a, b) in model.predict(&asked, 3).iter().zip(back.predict(&asked, 3)) {
                for ((class, p), (other, q)) in a.iter().zip(b) {
                    assert_eq!(*class, other, "{loss:?} {quantize}");
                    assert!((p - q).abs() < 1e-5, "{loss:?} {quantize}: {p} {q}");
                }
            }
        }
    }
}

#[test]
fn broken_files_name_the_part() {
    let whole = skipgram().0;
    assert!(parse(&whole).is_ok());
    for end in 0..whole.len() {
        let text = parse(&whole[..end]).unwrap_err().to_string();
        assert!(text.contains("cut off") || text.contains("has no end"), "{end}: {text}");
    }
    let error = |bytes: Bytes| parse(&bytes.0).unwrap_err().to_string();
    let head = |version: i32, dim: i32, bucket: i32| {
        let numbers = [793_712_314, version, dim, 5, 5, 1, 5, 1, 2, 2, bucket, 3, 3, 100];
        Bytes::default().i32(&numbers).f64(1e-4)
    };
    assert!(error(head(13, 2, 4)).contains("version is 13"));
    assert!(error(head(12, 0, 4)).contains("0 coordinates"));
    assert!(error(head(12, 2, -4)).contains("bucket = -4"));
    let dictionary = |n: [i32; 3]| head(12, 2, 4).i32(&n).i64(&[7, -1]);
    assert!(error(dictionary([3, 1, 1])).contains("3 entries are not 1 words and 1 labels"));
    assert!(error(dictionary([-1, -1, 0])).contains("is -1"));
    assert!(error(dictionary([1, 1, 0]).entry(b"", 4, 0)).contains("is empty"));
    assert!(error(dictionary([1, 1, 0]).entry(b"a", -4, 0)).contains("-4 times"));
    assert!(error(dictionary([1, 1, 0]).entry(b"a", 4, 1)).contains("kind 1"));
    // Sizes that no file has: nothing is allocated for them.
    let huge = dictionary([i32::MAX, i32::MAX, 0]).entry(b"a", 4, 0);
    assert!(
        error(huge).contains("cut off")
            || error(dictionary([i32::MAX, i32::MAX, 0])).contains("no end")
    );
    let one = dictionary([1, 1, 0]).entry(b"a", 4, 0).bytes(&[0]);
    assert!(error(one.clone().i64(&[1 << 60, 2])).contains("cut off"));
    assert!(error(one.clone().i64(&[i64::MAX, 2])).contains("cut off"));
    assert!(error(one.clone().i64(&[-1, 2])).contains("is -1"));
    assert!(error(one.clone().i64(&[5, 3])).contains("3 columns"));
    let nan = one.clone().i64(&[5, 2]).f32(&[0.0, f32::NAN]).f32(&[0.0; 8]);
    assert!(error(nan).contains("NaN"));
    let few = one.i64(&[2, 2]).f32(&[0.0; 4]);
    assert!(error(few).contains("2 rows, and words and buckets are 5"));
    let flag = dictionary([1, 1, 0]).entry(b"a", 4, 0).bytes(&[7]);
    assert!(error(flag).contains("must be 0 or 1"));
    let pruned = head(12, 2, 4).i32(&[1, 1, 0]).i64(&[7, 1]).entry(b"a", 4, 0).i32(&[2, 0]);
    assert!(error(pruned.bytes(&[0])).contains("not quantised"));
    let twice = head(12, 2, 4).i32(&[1, 1, 0]).i64(&[7, 2]).entry(b"a", 4, 0);
    assert!(error(twice.i32(&[2, 0, 3, 0])).contains("bucket 3 cannot be row 0"));
    let codes = dictionary([1, 1, 0]).entry(b"a", 4, 0).bytes(&[1, 0]).i64(&[1, 2]).i32(&[1]);
    let codes = codes.bytes(&[9]).i32(&[2, 1, 1, 1]);
    assert!(error(codes).contains("1 subspaces of 1"));
}

#[test]
fn words_that_are_not_text_are_left_out_with_a_remark() {
    let mut bytes = skipgram().0;
    let at = bytes.windows(2).position(|pair| pair == b"ab").unwrap();
    bytes[at] = 0xff;
    let mut said = Vec::new();
    let mut pass_on = |remark: String| said.push(remark);
    let found = parse(&bytes).unwrap();
    let model = word_vectors(Path::new("m.bin"), found, &mut Remarks::to(&mut pass_on)).unwrap();
    assert_eq!(model.len(), 1);
    assert!(said[0].contains("1 words are not UTF-8"), "{said:?}");
}
