//! What every command does with its output: whole or not at all, and never over what should stay.
//!
//! Each situation is tried with every command that writes, as the user who runs the tests and, if
//! that is root, as nobody as well, to whom permissions mean something.
#![cfg(unix)]

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const GRADUS: &str = env!("CARGO_BIN_EXE_gradus");

/// A command that writes; `OUT` stands for its output.
struct Case {
    line: &'static str,
    /// Ending of the output.
    ending: &'static str,
    /// What it reads and must not write.
    inputs: &'static [&'static str],
}

const fn case(line: &'static str, ending: &'static str, inputs: &'static [&'static str]) -> Case {
    Case { line, ending, inputs }
}

const CASES: &[Case] = &[
    case("make ratings --users 20 --items 10 --count 60 -o OUT", "csv", &[]),
    case("make regression --samples 20 -o OUT", "csv", &[]),
    case("make blobs --samples 20 -o OUT", "csv", &[]),
    case("split r.csv -o OUT --test other.csv", "csv", &["r.csv"]),
    case("split r.csv -o other.csv --test OUT", "csv", &["r.csv"]),
    case(
        "split r.csv --by cold --holdout 0.2 -o other.csv --test other2.csv --fold-in OUT",
        "csv",
        &["r.csv"],
    ),
    case("split s.csv --rows -o OUT --test other.csv", "csv", &["s.csv"]),
    case("fit mean r.csv -o OUT", "gradus", &["r.csv"]),
    case(
        "fit als r.csv --validation v.csv --max-iter 2 --rank 2 -o OUT",
        "gradus",
        &["r.csv", "v.csv"],
    ),
    case("fit ridge s.csv --target y -o OUT", "gradus", &["s.csv"]),
    case(
        "select ridge s.csv --target y --regularization 0.1,1 --cv 2 -o OUT",
        "gradus",
        &["s.csv"],
    ),
    case("compare s.csv --target y --models ridge -o OUT", "gradus", &["s.csv"]),
    case("update m.gradus v.csv -o OUT", "gradus", &["v.csv"]),
    case("predict m.gradus v.csv -o OUT", "csv", &["m.gradus", "v.csv"]),
    case("predict l.gradus s.csv -o OUT", "csv", &["l.gradus", "s.csv"]),
    case("recommend m.gradus --users u.txt -o OUT", "csv", &["m.gradus", "u.txt"]),
    case("recommend m.gradus --all --allow i.txt -o OUT", "jsonl", &["m.gradus", "i.txt"]),
    case("report m.gradus --data v.csv -o OUT", "html", &["m.gradus", "v.csv"]),
    case("report l.gradus -o OUT", "html", &["l.gradus"]),
    case("lab optimize --steps 5 --optimizer gd -o OUT", "svg", &[]),
    case(
        "lab biasvariance ridge --vary regularization 0.1,1 --rounds 2 --data s.csv --target y -o OUT",
        "html",
        &["s.csv"],
    ),
    case("lab recovery --size 6 --steps 1 --rounds 1 -o OUT", "html", &[]),
];

/// Who runs a command.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    Me,
    Nobody,
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

/// Everyone there is. Root is asked for nothing by permissions, so nobody is tried as well.
fn everyone() -> Vec<Who> {
    if !is_root() {
        return vec![Who::Me];
    }
    let mut all = vec![Who::Me];
    let mut probe = nobody(Command::new("setpriv"));
    match probe.args([GRADUS, "--version"]).output() {
        Ok(output) if output.status.success() => all.push(Who::Nobody),
        _ => eprintln!("left out: running as nobody (no setpriv, or the program is out of reach)"),
    }
    all
}

fn nobody(mut command: Command) -> Command {
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command
}

/// A folder with data and models in it, which belongs to whoever runs the commands.
struct Folder {
    folder: tempfile::TempDir,
    who: Who,
}

impl Folder {
    fn new(who: Who) -> Self {
        let folder = Self { folder: tempfile::tempdir().unwrap(), who };
        folder.open_up();
        folder.ok("make ratings --users 30 --items 20 --count 200 --ids integer -o r.csv");
        folder.ok("make ratings --users 30 --items 20 --count 60 --seed 2 --ids integer -o v.csv");
        folder.ok("make regression --samples 40 --features 3 -o s.csv");
        folder.ok("fit als r.csv -o m.gradus --rank 2 --max-iter 2");
        folder.ok("fit ridge s.csv --target y -o l.gradus");
        folder.put("u.txt", "1\n2\n");
        folder.put("i.txt", "1\n2\n3\n");
        folder
    }

    /// Makes the folder the runner's own.
    fn open_up(&self) {
        if self.who == Who::Nobody {
            std::os::unix::fs::chown(self.folder.path(), Some(65534), Some(65534)).unwrap();
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.at(name), content).unwrap();
        if self.who == Who::Nobody {
            std::os::unix::fs::chown(self.at(name), Some(65534), Some(65534)).unwrap();
        }
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.at(name)).unwrap()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = match self.who {
            Who::Me => Command::new(GRADUS),
            Who::Nobody => {
                let mut command = nobody(Command::new("setpriv"));
                command.arg(GRADUS);
                command
            }
        };
        command.current_dir(self.folder.path()).args(line.split(' ').filter(|w| !w.is_empty()));
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    fn ok(&self, line: &str) {
        let output = self.run(line);
        assert!(output.status.success(), "{:?} `{line}`: {}", self.who, said(&output));
    }

    /// That a run fails with this code, saying these words.
    fn fails(&self, line: &str, code: i32, words: &[&str]) {
        let output = self.run(line);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(code), "{:?} `{line}`: {text}", self.who);
        for word in words {
            assert!(text.contains(word), "{:?} `{line}` lacks {word:?}: {text}", self.who);
        }
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// That a run leaves the folder as it is, but for these names.
    fn unchanged(&self, run: impl FnOnce()) {
        let all = |folder: &Self| -> Vec<(String, Vec<u8>)> {
            let plain = folder.names().into_iter().filter(|name| folder.at(name).is_file());
            plain.map(|name| (name.clone(), folder.read(&name))).collect()
        };
        let (names, before) = (self.names(), all(self));
        run();
        assert_eq!(names, self.names());
        assert!(before == all(self), "a file has changed");
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn with(case: &Case, output: &str) -> String {
    case.line.replace("OUT", output)
}

/// Runs a test with every command as everyone.
fn each(test: impl Fn(&Folder, &Case)) {
    for who in everyone() {
        let folder = Folder::new(who);
        for case in CASES {
            test(&folder, case);
            for name in folder.names() {
                let kept = ["r.csv", "v.csv", "s.csv", "m.gradus", "l.gradus", "u.txt", "i.txt"];
                if !kept.contains(&name.as_str()) && !folder.at(&name).is_dir() {
                    fs::remove_file(folder.at(&name)).unwrap();
                }
            }
        }
    }
}

#[test]
fn a_file_of_the_same_kind_is_replaced_and_keeps_its_permissions() {
    each(|folder, case| {
        let out = format!("out.{}", case.ending);
        folder.ok(&with(case, &out));
        let first = folder.read(&out);
        assert!(!first.is_empty(), "{}", case.line);
        fs::set_permissions(folder.at(&out), fs::Permissions::from_mode(0o640)).unwrap();
        folder.ok(&with(case, &out));
        let now = folder.at(&out).metadata().unwrap();
        assert_eq!(now.mode() & 0o777, 0o640, "{}", case.line);
        assert!(folder.read(&out) == first, "another result: {}", case.line);
        assert!(!folder.names().iter().any(|name| name.ends_with(".tmp")), "{:?}", folder.names());
    });
}

#[test]
fn a_file_of_another_kind_is_replaced_only_by_force() {
    each(|folder, case| {
        let out = format!("out.{}", case.ending);
        let text = matches!(case.ending, "csv" | "jsonl");
        let foreign = if text { folder.read("m.gradus") } else { b"my notes\n".to_vec() };
        folder.put(&out, &foreign);
        folder.unchanged(|| folder.fails(&with(case, &out), 2, &["--force", &out]));
        folder.ok(&format!("{} --force", with(case, &out)));
        assert!(folder.read(&out) != foreign, "{}", case.line);
        // An empty file is of no kind.
        folder.put(&out, "");
        folder.ok(&with(case, &out));
    });
}

#[test]
fn links_are_written_through_and_stay() {
    each(|folder, case| {
        let (out, link) = (format!("out.{}", case.ending), format!("link.{}", case.ending));
        // A dangling link first, then one to a file.
        symlink(&out, folder.at(&link)).unwrap();
        for _ in 0..2 {
            folder.ok(&with(case, &link));
            assert!(folder.at(&link).symlink_metadata().unwrap().is_symlink(), "{}", case.line);
            assert!(folder.at(&out).symlink_metadata().unwrap().is_file(), "{}", case.line);
            assert!(!folder.read(&out).is_empty());
        }
    });
}

#[test]
fn pipes_and_devices_are_written_to_and_stay() {
    each(|folder, case| {
        let pipe = format!("pipe.{}", case.ending);
        assert!(Command::new("mkfifo").arg(folder.at(&pipe)).status().unwrap().success());
        if folder.who == Who::Nobody {
            std::os::unix::fs::chown(folder.at(&pipe), Some(65534), Some(65534)).unwrap();
        }
        let path = folder.at(&pipe);
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            fs::File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
            bytes
        });
        folder.ok(&with(case, &pipe));
        let through = reader.join().unwrap();
        assert!(folder.at(&pipe).symlink_metadata().unwrap().file_type().is_fifo());
        let out = format!("out.{}", case.ending);
        folder.ok(&with(case, &out));
        assert!(folder.read(&out) == through, "another result: {}", case.line);

        let null = format!("null.{}", case.ending);
        symlink("/dev/null", folder.at(&null)).unwrap();
        folder.ok(&with(case, &null));
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        let full = format!("full.{}", case.ending);
        symlink("/dev/full", folder.at(&full)).unwrap();
        folder.fails(&with(case, &full), 1, &["full"]);
        assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    });
}

#[test]
fn an_output_is_never_an_input() {
    each(|folder, case| {
        for input in case.inputs {
            let (hard, soft) = (format!("hard.{}", case.ending), format!("soft.{}", case.ending));
            let _ = fs::remove_file(folder.at(&hard));
            let _ = fs::remove_file(folder.at(&soft));
            fs::hard_link(folder.at(input), folder.at(&hard)).unwrap();
            symlink(input, folder.at(&soft)).unwrap();
            let mut names = vec![hard, soft];
            if input.ends_with(case.ending) || case.line.starts_with("fit") {
                let whole = folder.at(input).display().to_string();
                names.extend([(*input).to_owned(), format!("./{input}"), whole]);
            }
            for name in names {
                for more in ["", " --force"] {
                    let line = format!("{}{more}", with(case, &name));
                    folder.unchanged(|| folder.fails(&line, 2, &["also an input"]));
                }
            }
        }
    });
}

#[test]
fn two_outputs_are_two_files() {
    for who in everyone() {
        let folder = Folder::new(who);
        folder.put("old.csv", "1,2\n");
        fs::hard_link(folder.at("old.csv"), folder.at("hard.csv")).unwrap();
        symlink("new.csv", folder.at("soft.csv")).unwrap();
        for (one, two) in [
            ("new.csv", "new.csv"),
            ("new.csv", "./new.csv"),
            ("new.csv", "soft.csv"),
            ("old.csv", "hard.csv"),
        ] {
            folder.unchanged(|| {
                folder.fails(&format!("split r.csv -o {one} --test {two}"), 2, &["another output"]);
                let line = format!("split s.csv --rows -o {one} --test {two}");
                folder.fails(&line, 2, &["another output"]);
            });
        }
        folder.ok("split r.csv -o /dev/null --test /dev/null");
    }
}

#[test]
fn where_nothing_can_be_written_nothing_is_begun() {
    each(|folder, case| {
        let out = format!("out.{}", case.ending);
        folder.unchanged(|| {
            folder.fails(&with(case, &format!("none/{out}")), 2, &["no such folder"]);
            folder.fails(&with(case, &format!("r.csv/{out}")), 2, &["r.csv"]);
        });
        let _ = fs::create_dir(folder.at(&format!("folder.{}", case.ending)));
        folder.fails(&with(case, &format!("folder.{}", case.ending)), 2, &["is a folder"]);
        if is_root() && folder.who == Who::Me {
            return;
        }
        let closed = folder.at("closed");
        let _ = fs::create_dir(&closed);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
        folder.fails(&with(case, &format!("closed/{out}")), 2, &["ermission denied"]);
        folder.put(&out, "");
        fs::set_permissions(folder.at(&out), fs::Permissions::from_mode(0o444)).unwrap();
        folder.unchanged(|| folder.fails(&with(case, &out), 2, &["ermission denied"]));
    });
}

#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_else() {
    each(|folder, case| {
        let out = format!("out.{}", case.ending);
        folder.ok(&with(case, &out));
        let old = folder.read(&out);
        let names = folder.names();
        // Writing even one byte to a file is too much; the signal that says so is ignored.
        let line = with(case, &out);
        let command = folder.command(&line);
        let mut limited = Command::new("sh");
        limited.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]);
        limited.arg(command.get_program()).args(command.get_args());
        let output =
            limited.current_dir(folder.folder.path()).env("TMPDIR", "/none").output().unwrap();
        assert_eq!(output.status.code(), Some(1), "`{line}`: {}", said(&output));
        assert!(folder.read(&out) == old, "`{line}` has changed the old file");
        assert_eq!(folder.names(), names, "`{line}`");
        // The same without an old file.
        fs::remove_file(folder.at(&out)).unwrap();
        let output = limited.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "`{line}`: {}", said(&output));
        assert!(!folder.at(&out).exists(), "`{line}` has left a part");
    });
}

#[test]
fn a_model_that_does_not_fit_on_its_disk_is_kept_elsewhere() {
    if !is_root() {
        eprintln!("left out: only root can mount a small disk");
        return;
    }
    let folder = Folder::new(Who::Me);
    fs::create_dir(folder.at("small")).unwrap();
    fs::create_dir(folder.at("tmp")).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=8k", "none"])
        .arg(folder.at("small"))
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("left out: no small disk can be mounted here");
        return;
    }
    let output = folder
        .command("fit als r.csv -o small/m.gradus --rank 64 --max-iter 1")
        .env("TMPDIR", folder.at("tmp"))
        .output()
        .unwrap();
    let left = fs::read_dir(folder.at("small")).unwrap().count();
    let unmounted = Command::new("umount").arg(folder.at("small")).status().unwrap();
    assert!(unmounted.success());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(left, 0);
    let kept = fs::read_dir(folder.at("tmp")).unwrap().next().unwrap().unwrap().path();
    assert!(said(&output).contains(&kept.display().to_string()), "{}", said(&output));
    folder.ok(&format!("info {}", kept.display()));
}

#[test]
fn a_killed_command_leaves_the_old_file_and_nothing_else() {
    let folder = Folder::new(Who::Me);
    folder.put("big.csv", "user,item,rating\n1,1,1\n");
    let old = folder.read("big.csv");
    let names = folder.names();
    // Minutes of work on any machine, so that the kill always comes first.
    let line = "make ratings --users 200000 --items 5000 --count 400000000 -o big.csv";
    for (n, signal) in ["-KILL", "-INT", "-TERM", "-KILL", "-INT"].iter().enumerate() {
        let mut child = folder.command(line).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(150 + 130 * n as u64));
        let killed =
            Command::new("kill").args([*signal, &child.id().to_string()]).status().unwrap();
        let status = child.wait().unwrap();
        assert!(killed.success() && !status.success(), "it was done before it was killed");
        assert!(folder.read("big.csv") == old, "{signal} changed the old file");
        assert_eq!(folder.names(), names, "{signal}");
    }
}

#[test]
fn folders_of_outputs_keep_what_is_not_theirs() {
    for who in everyone() {
        let folder = Folder::new(who);
        let demo = "demo --users 60 --items 30 --count 900 -q";
        folder.put("report.html", folder.read("m.gradus"));
        folder.unchanged(|| folder.fails(demo, 2, &["report.html", "--force"]));
        fs::remove_file(folder.at("report.html")).unwrap();
        folder.put("demo.gradus", "my notes\n");
        folder.unchanged(|| folder.fails(demo, 2, &["demo.gradus", "--force"]));
        folder.ok(&format!("{demo} --force"));
        folder.ok(demo);
        folder.ok("man pages -q");
        assert!(folder.at("pages/gradus-fit-als.1").is_file());
        folder.ok("man pages -q");
        fs::copy(folder.at("m.gradus"), folder.at("pages/gradus-fit-als.1")).unwrap();
        folder.fails("man pages -q", 2, &["gradus-fit-als.1", "--force"]);
    }
}

#[test]
fn standard_output_is_where_the_command_says_so() {
    let folder = Folder::new(Who::Me);
    let out = |line: &str| {
        let output = folder.run(line);
        assert!(output.status.success(), "`{line}`: {}", said(&output));
        output.stdout
    };
    let expected = out("predict m.gradus v.csv");
    for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        assert!(out(&format!("predict m.gradus v.csv -o {name}")) == expected, "{name}");
    }
    assert!(out("report m.gradus -o -").starts_with(b"<!"));
    folder.unchanged(|| folder.fails("fit mean r.csv -o -", 2, &["standard output", "./-"]));
    // What the shell redirected to is written where it stands, not from its start.
    let script = format!("(echo first; {GRADUS} make blobs --samples 3 -o /dev/stdout -q) > o.txt");
    let shell = Command::new("sh").args(["-c", &script]).current_dir(folder.folder.path()).status();
    assert!(shell.unwrap().success());
    let text = String::from_utf8(folder.read("o.txt")).unwrap();
    assert!(text.starts_with("first\nx1,x2,y\n"), "{text}");
    // Compressed by name, and read back.
    folder.ok("predict m.gradus v.csv -o p.csv.gz");
    assert_eq!(folder.read("p.csv.gz")[..2], [0x1f, 0x8b]);
    folder.ok("split r.csv -o a.csv.zst --test b.csv.gz");
    folder.ok("fit mean a.csv.zst -o mean.gradus --validation b.csv.gz");
}

#[test]
fn whoever_may_not_replace_a_file_hears_it_before_the_work() {
    if !is_root() || everyone().len() < 2 {
        eprintln!("left out: takes root and nobody");
        return;
    }
    // In a folder like /tmp only the owner of a file may replace it, even if others may write it.
    let folder = Folder::new(Who::Nobody);
    let shared = folder.at("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let path: &Path = &shared.join("m.gradus");
    fs::copy(folder.at("m.gradus"), path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
    folder.fails("fit mean r.csv -o shared/m.gradus", 2, &["belongs to somebody else"]);
    folder.ok("fit mean r.csv -o shared/n.gradus");
}
