//! The output of a command: tables for people, JSON for programs, and errors.

pub use gradus_base::text::grouped;
use gradus_base::text::{printable, printable_json, printable_lines};
use serde_json::{Value, json};
use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// Something is wrong with the data, the model or a parameter: exit code 1.
    Gradus(gradus::Error),
    /// The command line contradicts itself: exit code 2, as for any usage error.
    Usage(String),
    /// Printing failed.
    Output(io::Error),
    /// Ctrl-C; what could be saved is saved: exit code 130.
    Interrupted,
}

/// The result of a command.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    /// Whether the reader of the output has closed the pipe.
    pub fn is_broken_pipe(&self) -> bool {
        match self {
            Self::Output(error) | Self::Gradus(gradus::Error::Io { source: error, .. }) => {
                error.kind() == io::ErrorKind::BrokenPipe
            }
            _ => false,
        }
    }

    /// Returns the kind of failure, for programs.
    fn kind(&self) -> &'static str {
        use gradus::Error;
        match self {
            Self::Usage(_) => "usage",
            Self::Interrupted => "interrupted",
            Self::Output(_) => "io",
            Self::Gradus(error) => match error {
                Error::Parameter { .. } => "parameter",
                Error::Row { .. } => "row",
                Error::Shape { .. } => "shape",
                Error::UnknownId { .. } => "unknown_id",
                Error::UnknownName { .. } => "unknown_name",
                Error::Unsupported { .. } => "unsupported",
                Error::Format { .. } | Error::OtherKind { .. } => "format",
                Error::Io { .. } => "io",
                _ => "data",
            },
        }
    }

    fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Interrupted => 130,
            Self::Gradus(_) | Self::Output(_) => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gradus(error) => f.write_str(&crate::flags::named(&error.to_string())),
            Self::Usage(text) => f.write_str(text),
            Self::Output(error) => write!(f, "cannot print: {error}"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl From<gradus::Error> for Failure {
    fn from(error: gradus::Error) -> Self {
        Self::Gradus(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Whether the result was printed as JSON: a second value would spoil it.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Prints a failure as JSON on standard output, where a program looks for the result.
pub fn say_failure_in_json(failure: &Failure) {
    if PRINTED.load(Ordering::Relaxed) {
        return;
    }
    let (kind, message) = (failure.kind(), failure.to_string());
    let mut record = json!({"kind": kind, "message": message, "exit_code": failure.code()});
    if let Failure::Gradus(gradus::Error::Row { file, line, column, .. }) = failure {
        (record["file"], record["line"], record["column"]) =
            (json!(file), json!(line), json!(column));
    }
    // Whether it can be printed or not, the exit code tells.
    let _ = print_json(&json!({"error": record}));
}

fn print_json(value: &Value) -> Outcome {
    let text = if io::stdout().is_terminal() {
        serde_json::to_string_pretty(value)
    } else {
        serde_json::to_string(value)
    };
    let text = text.map_err(io::Error::from)?;
    Ok(writeln!(io::stdout().lock(), "{}", printable_json(&text))?)
}

/// The flags common to all commands.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Print JSON.
    pub json: bool,
    /// Say nothing but the result.
    pub quiet: bool,
}

impl Context {
    /// A remark on standard error, unless `--quiet`.
    pub fn remark(&self, text: impl fmt::Display) {
        if !self.quiet {
            eprintln!("{}", printable_lines(&text.to_string()));
        }
    }

    /// A line on standard output.
    pub fn say(&self, text: impl fmt::Display) -> Outcome {
        Ok(writeln!(io::stdout().lock(), "{}", printable_lines(&text.to_string()))?)
    }

    /// The result as JSON on standard output.
    pub fn json(&self, value: &Value) -> Outcome {
        PRINTED.store(true, Ordering::Relaxed);
        print_json(value)
    }
}

/// A table for people: columns padded to their widest cell.
pub struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
}

impl Table {
    /// Begins with the headers; a header that starts with `>` aligns its column to the right.
    pub fn new(headers: &[&str]) -> Self {
        Self {
            right: headers.iter().map(|header| header.starts_with('>')).collect(),
            rows: vec![headers.iter().map(|h| shown(h.trim_start_matches('>'))).collect()],
        }
    }

    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(|cell| shown(&cell.into())).collect());
    }
}

/// A cell of a table: ids and names may hold anything, line ends and escape sequences too.
fn shown(cell: &str) -> String {
    printable(cell).into_owned()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[column] - cell.chars().count());
                if self.right[column] {
                    line += &pad;
                    line += cell;
                } else {
                    line += cell;
                    line += &pad;
                }
                line += "  ";
            }
            if number > 0 {
                writeln!(f)?;
            }
            f.write_str(line.trim_end())?;
            if number == 0 {
                let rule: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
                write!(f, "\n{}", rule.join("──"))?;
            }
        }
        Ok(())
    }
}

/// Seconds with the digits that matter.
pub fn seconds(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.2} s") } else { format!("{seconds:.0} s") }
}

/// The largest amount of memory that this process has used, where the system tells.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let shown: Vec<_> = [0, 12, 123, 1234, 1234567].map(grouped).to_vec();
        assert_eq!(shown, ["0", "12", "123", "1,234", "1,234,567"]);
    }

    #[test]
    fn tables_align_their_columns() {
        let mut table = Table::new(&["item", ">score"]);
        table.row(["Alien", "4.5"]);
        table.row(["é", "12.25"]);
        assert_eq!(table.to_string(), "item   score\n────────────\nAlien    4.5\né      12.25");
    }

    #[test]
    fn a_cell_cannot_steer_the_terminal() {
        let mut table = Table::new(&["item\u{9b}"]);
        table.row(["a\u{1b}]0;title\u{7}\n\u{202e}b"]);
        let text = table.to_string();
        assert!(text.contains(r"a\u{1b}]0;title\u{7}\n\u{202e}b"), "{text}");
        assert_eq!(text.lines().count(), 3);
    }
}
