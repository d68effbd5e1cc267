//! Writing files: whole or not at all, and nothing that should stay.
#![cfg(unix)]

use gradus_base::{Error, Result};
use gradus_file::output::{FileKind, Files, Output};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

fn put(path: &Path, text: &str) -> Result<()> {
    Output::check(path)?.write(|file| file.write_all(text.as_bytes()))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    put(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let output = Output::check(&path).unwrap();
    let failed = output.write(|file| {
        file.write_all(&vec![b'x'; 3 << 20])?;
        Err(io::Error::other("no more"))
    });
    assert!(failed.unwrap_err().to_string().contains("no more"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    let mut file = output.create().unwrap();
    file.write_all(b"part").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    drop(file);
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    put(&path, "new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o640);
    assert_eq!(names(folder.path()), ["f"]);
}

#[test]
fn links_are_followed_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("deep")).unwrap();
    put(&at("deep/real"), "old").unwrap();
    symlink("deep/real", at("link")).unwrap();
    symlink("link", at("second")).unwrap();
    symlink("deep/none", at("dangling")).unwrap();
    symlink("nowhere/none", at("lost")).unwrap();
    symlink("circle", at("circle")).unwrap();
    put(&at("second"), "new").unwrap();
    put(&at("dangling"), "made").unwrap();
    assert_eq!(fs::read_to_string(at("deep/real")).unwrap(), "new");
    assert_eq!(fs::read_to_string(at("deep/none")).unwrap(), "made");
    for link in ["link", "second", "dangling"] {
        assert!(at(link).symlink_metadata().unwrap().is_symlink(), "{link}");
    }
    assert!(put(&at("lost"), "x").unwrap_err().to_string().contains("no such folder"));
    assert!(put(&at("circle"), "x").is_err());
}

#[test]
fn other_hard_links_keep_the_old_content() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    put(&one, "old").unwrap();
    fs::hard_link(&one, &two).unwrap();
    put(&one, "new").unwrap();
    assert_eq!(fs::read_to_string(&two).unwrap(), "old");
}

#[test]
fn pipes_are_written_to_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    // Checking must neither wait for a reader nor disturb one.
    assert!(Output::check(&path).unwrap().is_stream());
    let reader = {
        let path = path.clone();
        std::thread::spawn(move || {
            let mut text = String::new();
            fs::File::open(path).unwrap().read_to_string(&mut text).unwrap();
            text
        })
    };
    put(&path, "through").unwrap();
    assert_eq!(reader.join().unwrap(), "through");
    assert!(path.symlink_metadata().unwrap().file_type().is_fifo());
    put(Path::new("/dev/null"), "gone").unwrap();
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let full = put(Path::new("/dev/full"), "x").unwrap_err().to_string();
    assert!(full.contains("/dev/full"), "{full}");
}

#[test]
fn what_cannot_be_written_is_refused_without_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    put(&at("file"), "text").unwrap();
    let before = at("file").metadata().unwrap();
    for (name, words) in [
        ("", "folder"),
        ("none/f", "no such folder"),
        ("none/", "no such folder"),
        ("socket", "socket"),
        ("file/f", "file"),
    ] {
        let error = Output::check(&at(name)).unwrap_err().to_string();
        assert!(error.contains(words), "{name:?}: {error}");
    }
    assert!(Output::check(Path::new("")).is_err());
    Output::check(&at("file")).unwrap();
    Output::check(&at("new")).unwrap();
    let after = at("file").metadata().unwrap();
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    assert_eq!(names(folder.path()), ["file", "socket"]);
    drop(socket);
}

#[test]
fn compression_goes_by_the_name() {
    let folder = tempfile::tempdir().unwrap();
    for (name, kind) in
        [("a.csv", FileKind::Text), ("a.gz", FileKind::Compressed), ("a.zst", FileKind::Compressed)]
    {
        let path = folder.path().join(name);
        assert_eq!(FileKind::of_text_named(&path), kind);
        let output = Output::check(&path).unwrap().compressed_by_name();
        output.write(|file| file.write_all(b"1,2\n")).unwrap();
        assert_eq!(FileKind::of(&path).unwrap(), Some(kind));
        let table = gradus_data::Table::read(&path, &Default::default()).unwrap();
        assert_eq!((table.n_rows(), table.n_cols()), (1, 2));
    }
}

#[test]
fn an_output_is_no_input_and_no_other_output_by_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    put(&at("data.csv"), "1,2\n").unwrap();
    symlink("data.csv", at("link.csv")).unwrap();
    fs::hard_link(at("data.csv"), at("hard.csv")).unwrap();
    symlink("../new.csv", at("sub/later.csv")).unwrap();
    for name in ["data.csv", "./data.csv", "sub/../data.csv", "link.csv", "hard.csv"] {
        let mut files = Files::new(true);
        files.input(&at("data.csv"));
        let error = files.output(&at(name), FileKind::Text).unwrap_err().to_string();
        assert!(error.contains("also an input"), "{name}: {error}");
    }
    for (one, two) in [
        ("new.csv", "new.csv"),
        ("new.csv", "./new.csv"),
        ("new.csv", "sub/../new.csv"),
        ("new.csv", "sub/later.csv"),
        ("data.csv", "hard.csv"),
    ] {
        let mut files = Files::new(true);
        files.output(&at(one), FileKind::Text).unwrap();
        let error = files.output(&at(two), FileKind::Text).unwrap_err().to_string();
        assert!(error.contains("another output"), "{one}, {two}: {error}");
    }
    let mut files = Files::new(false);
    files.input(Path::new("/dev/null"));
    files.output(Path::new("/dev/null"), FileKind::Text).unwrap();
    files.output(Path::new("/dev/null"), FileKind::Text).unwrap();
    files.output(&at("other.csv"), FileKind::Text).unwrap();
}

#[test]
fn a_file_of_another_kind_is_replaced_only_by_force() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    put(&path, "1,2\n").unwrap();
    Files::new(false).output(&path, FileKind::Text).unwrap();
    Files::new(true).output(&path, FileKind::Model).unwrap();
    let error = Files::new(false).output(&path, FileKind::Model).unwrap_err();
    assert!(
        matches!(&error, Error::OtherKind { found, .. } if *found == FileKind::Text.to_string()),
        "{error}"
    );
    assert!(error.to_string().contains("a text file, not a gradus model"), "{error}");
    // A checkpoint is removed at the end, so force is not enough.
    assert!(Files::new(true).checkpoint(&path).is_err());
    put(&path, "").unwrap();
    Files::new(false).output(&path, FileKind::Model).unwrap();
    Files::new(false).checkpoint(&path).unwrap();
}
