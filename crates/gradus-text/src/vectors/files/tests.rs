use super::*;
use crate::vectors::WordVectors;
use gradus_core::dataset::Remarks;
use gradus_core::embed::Embed as _;
use std::fmt::Write as _;

fn model() -> WordVectors {
    let words = ["the", "été", "x_1", "東京"];
    let vectors =
        [0.1, -2.5e-7, 3.0, 1.0 / 3.0, -0.0, 1e20, 7.0, 8.0, 9.5, -1.5, 2.25, f32::MIN_POSITIVE];
    WordVectors::new(&words, None, &vectors, None).unwrap()
}

fn read(bytes: &[u8], format: Option<VectorFormat>) -> Result<(WordVectors, Vec<String>), String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vectors");
    std::fs::write(&path, bytes).unwrap();
    let mut said = Vec::new();
    let read = read_vectors(&path, format, &mut Remarks::to(&mut |text| said.push(text)));
    read.map(|model| (model, said)).map_err(|error| error.to_string())
}

fn written(format: VectorFormat) -> Vec<u8> {
    let mut out = Vec::new();
    model().export(format, &mut out).unwrap();
    out
}

#[test]
fn what_is_written_is_read_to_the_bit_and_told_by_its_content() {
    for format in [VectorFormat::Text, VectorFormat::Binary, VectorFormat::Glove] {
        for said in [None, Some(format)] {
            let (read, remarks) = read(&written(format), said).unwrap();
            assert_eq!(read, model(), "{format:?}");
            assert!(remarks.is_empty());
        }
    }
    assert_eq!(VectorFormat::named(Path::new("a/b.BIN.gz")), VectorFormat::Binary);
    assert_eq!(VectorFormat::named(Path::new("wiki.vec")), VectorFormat::Text);
}

#[test]
fn files_as_other_programs_write_them_are_read() {
    // fastText ends lines with a blank; some ends are those of Windows.
    let (vec, _) = read(b"2 2\nthe 0.5 1 \r\n</s> -1 2e-1 \n", None).unwrap();
    assert_eq!((vec.word(0), vec.vector(0)), ("</s>", &[-1.0, 0.2][..]));
    assert_eq!(&*vec.ranking(), [1, 0]);
    // word2vec writes no line end after binary vectors in newer forks.
    let mut bytes = b"2 1\na ".to_vec();
    bytes.extend(1.5f32.to_le_bytes());
    bytes.extend(b"b ");
    bytes.extend((-3.5f32).to_le_bytes());
    let (binary, _) = read(&bytes, None).unwrap();
    assert_eq!((binary.vector(0), binary.vector(1)), (&[1.5][..], &[-3.5][..]));
    // GloVe has words with blanks, and words that are numbers.
    let (glove, _) = read(b"the 1 2\n. . . 3 4\n7 5 6\n", None).unwrap();
    assert_eq!((glove.word(0), glove.vector(0)), (". . .", &[3.0, 4.0][..]));
    assert_eq!(glove.vector(1), [5.0, 6.0]);
    let error = glove.check_export().unwrap_err().to_string();
    assert!(error.contains("\". . .\" has a blank"), "{error}");
}

#[test]
fn a_word_that_is_there_twice_keeps_its_first_vector() {
    let (model, remarks) = read(b"3 1\na 1\nb 2\na 3\n", None).unwrap();
    assert_eq!((model.len(), model.vector(0)), (2, &[1.0][..]));
    assert!(remarks[0].contains("1 words are there again"), "{remarks:?}");
}

#[test]
fn a_broken_text_file_names_the_line_and_the_rule() {
    let error = |bytes: &[u8]| read(bytes, None).unwrap_err();
    let short = error(b"3 2\na 1 2\nb 1\nc 1 2\n");
    assert!(
        short.contains("line 3") && short.contains("has 1 numbers after the word \"b\""),
        "{short}"
    );
    let long = error(b"a 1 2\nb 1 2 3\n");
    assert!(
        long.contains("line 2") && long.contains("has 3 numbers") && long.contains("have 2"),
        "{long}"
    );
    let word = error(b"1 2\na 1 x\n");
    assert!(word.contains("line 2") && word.contains("\"x\" of the word \"a\""), "{word}");
    let nan = error(b"1 2\na 1 nan\n");
    assert!(nan.contains("line 2") && nan.contains("not a finite number"), "{nan}");
    let bytes = error(b"a 1 2\nb\xff 1 2\n");
    assert!(bytes.contains("line 2") && bytes.contains("not UTF-8"), "{bytes}");
    let cut = error(b"3 2\na 1 2\nb 1 2\n");
    assert!(cut.contains("header says 3 words, and 2 follow"), "{cut}");
    assert!(error(b"").contains("is empty"));
    for no_vectors in [&b"word\n"[..], b"user,item,rating\n1,2,3\n", b"to be or not to be\n"] {
        let said = error(no_vectors);
        assert!(said.contains("not a gradus model file, nor vectors of words"), "{said}");
    }
    let wide = error(b"1 99999999999\na 1\n");
    assert!(wide.contains("line 1") && wide.contains("99999999999 coordinates"), "{wide}");
    assert!(error(b"2 0\na\nb\n").contains("0 coordinates"));
}

#[test]
fn a_broken_binary_file_names_the_word_and_the_rule() {
    let good = written(VectorFormat::Binary);
    let error = |bytes: &[u8]| read(bytes, Some(VectorFormat::Binary)).unwrap_err();
    let cut = error(&good[..good.len() - 5]);
    assert!(cut.contains("word 4 of 4") && cut.contains("ends within the 3 numbers"), "{cut}");
    let mut more = good.clone();
    more.extend(b"more words than the header says");
    assert!(error(&more).contains("bytes follow the last of 4 words"));
    assert!(error(b"2 2\nab").contains("word 1 of 2: the file ends here"));
    assert!(error(b"two words\n").contains("header of two whole numbers"));
    let mut fasttext = 793_712_314_u32.to_le_bytes().to_vec();
    fasttext.extend(b"anything");
    assert!(read(&fasttext, None).unwrap_err().contains("fastText"));
    // Any cut and any flipped byte is an error or a model, never a panic.
    for end in 0..good.len() {
        let _ = read(&good[..end], None);
        let mut bad = good.clone();
        bad[end] ^= 0x81;
        let _ = read(&bad, None);
    }
}

#[test]
fn a_large_file_keeps_the_order_of_its_words() {
    let mut text = String::from("2000 3\n");
    for at in 0..2000 {
        writeln!(text, "w{} {at} {} 0.25", (at * 7) % 2000, -at).unwrap();
    }
    let (model, _) = read(text.as_bytes(), None).unwrap();
    let first = model.ranking()[1] as usize;
    assert_eq!((model.word(first), model.vector(first)), ("w7", &[1.0, -1.0, 0.25][..]));
    let mut out = Vec::new();
    model.export(VectorFormat::Text, &mut out).unwrap();
    assert_eq!(out, text.as_bytes());
}
