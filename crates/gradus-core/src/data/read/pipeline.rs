//! Parses blocks in parallel and hands them on in order.
//!
//! As many workers as the pool has threads, all alike: each takes the next block from the input,
//! parses it, and, if it is the next in order, hands it and those waiting behind it to the sink.
//! Blocks ahead of their turn wait; when too many do, workers pause, which bounds the memory. A
//! worker only ever waits for a block that another running worker holds, so there is no deadlock
//! even in a pool with one thread.

use super::blocks::{Block, Blocks, Delimiter, MAX_RECORD};
use super::detect::Layout;
use super::options::{Columns, OnError, ReadOptions, ReadSummary};
use super::source::Input;
use super::{Sink, Table};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};

/// How many bad rows are told in words.
pub(super) const TOLD: usize = 5;

/// A bad row: its line, counted from 0 at the start of the block, the column to blame, and why.
#[derive(Debug)]
pub(super) struct Bad {
    pub line: u64,
    pub column: Option<String>,
    pub reason: String,
}

/// A block, parsed.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub table: Table,
    /// Line ends in the block.
    pub lines: u64,
    /// The first few bad rows.
    pub bad: Vec<Bad>,
    pub n_bad: u64,
}

impl Parsed {
    /// Notes a bad row; tells whether to go on.
    pub(super) fn note(&mut self, on_error: OnError, bad: Bad) -> bool {
        self.n_bad += 1;
        if self.bad.len() < TOLD {
            self.bad.push(bad);
        }
        on_error == OnError::Skip
    }
}

/// A parser of whole records.
pub(super) trait Parser: Sync {
    /// Parses `text` into `room`, an empty table.
    fn parse(&self, text: &[u8], room: Table, on_error: OnError) -> Parsed;
}

/// What the blocks handed on so far came to.
struct Progress<'a> {
    sink: Sink<'a>,
    name: String,
    on_error: OnError,
    rows: u64,
    skipped: u64,
    first_errors: Vec<String>,
    lines: u64,
}

impl Progress<'_> {
    /// Takes the rows of a block; gives its table back for the next one.
    fn take(&mut self, mut parsed: Parsed) -> Result<Table> {
        for bad in parsed.bad {
            let error = Error::Row {
                file: self.name.clone(),
                line: self.lines + bad.line + 1,
                column: bad.column,
                reason: bad.reason,
            };
            if self.on_error == OnError::Fail {
                return Err(error);
            }
            if self.first_errors.len() < TOLD {
                self.first_errors.push(error.to_string());
            }
        }
        self.rows += parsed.table.len() as u64;
        self.skipped += parsed.n_bad;
        self.lines += parsed.lines;
        (self.sink)(&mut parsed.table)?;
        Ok(parsed.table.cleared())
    }
}

struct Queue<'a> {
    /// Missing while a worker is busy with it.
    progress: Option<Progress<'a>>,
    waiting: BTreeMap<u64, Result<Parsed>>,
    /// Tables to use again: fresh ones would cost a page fault for every 4 KiB.
    spare: Vec<Table>,
    /// The block whose turn it is.
    turn: u64,
    /// How it ended, once it has to.
    failed: Option<Error>,
    /// Nothing more to do: failed, or a worker panicked.
    stop: bool,
}

struct Reader<'a, 'b> {
    blocks: Blocks<'a, 'b>,
    next: u64,
    done: bool,
}

/// Reads all of `input` into the sink.
pub(super) fn run(
    input: &mut Input<'_>,
    layout: Layout,
    quotes: Option<Delimiter>,
    parser: &dyn Parser,
    options: &ReadOptions,
    sink: Sink<'_>,
) -> Result<ReadSummary> {
    let progress = Progress {
        sink,
        name: input.name.clone(),
        on_error: options.on_error,
        rows: 0,
        skipped: 0,
        first_errors: Vec::new(),
        lines: layout.lines_before,
    };
    let n_workers = rayon::current_num_threads();
    let reader = Mutex::new(Reader {
        blocks: Blocks::new(input, quotes, options.block),
        next: 0,
        done: false,
    });
    let queue = Mutex::new(Queue {
        progress: Some(progress),
        waiting: BTreeMap::new(),
        spare: Vec::new(),
        turn: 0,
        failed: None,
        stop: false,
    });
    let moved = Condvar::new();
    rayon::scope(|scope| {
        for _ in 0..n_workers {
            scope.spawn(|_| work(&reader, &queue, &moved, parser, options.on_error, 2 * n_workers));
        }
    });
    drop(reader);
    let queue = queue.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    match (queue.failed, queue.progress) {
        (Some(error), _) => Err(error),
        (None, Some(progress)) => Ok(ReadSummary {
            rows: progress.rows,
            skipped: progress.skipped,
            first_errors: progress.first_errors,
            bytes: input.bytes,
            seconds: 0.0,
            build_seconds: 0.0,
            format: layout.format,
            columns: Columns::from(&layout),
        }),
        (None, None) => unreachable!("every worker gives the progress back or fails"),
    }
}

fn work(
    reader: &Mutex<Reader<'_, '_>>,
    queue: &Mutex<Queue<'_>>,
    moved: &Condvar,
    parser: &dyn Parser,
    on_error: OnError,
    most_waiting: usize,
) {
    let _alarm = Alarm { queue, moved };
    let mut spare = Vec::new();
    loop {
        let room = {
            let mut queue = lock(queue);
            while queue.waiting.len() > most_waiting && !queue.stop {
                queue = moved.wait(queue).unwrap_or_else(|poisoned| poisoned.into_inner());
            }
            if queue.stop {
                return;
            }
            queue.spare.pop().unwrap_or_default()
        };
        let (number, block) = {
            let mut reader = lock(reader);
            if reader.done {
                return;
            }
            let block = reader.blocks.next(std::mem::take(&mut spare));
            reader.done = !matches!(block, Ok(Some(_)));
            let number = reader.next;
            reader.next += 1;
            (number, block)
        };
        let parsed = match block {
            Ok(None) => return,
            Err(error) => Err(error),
            Ok(Some(Block::Text(text))) => {
                let parsed = parser.parse(&text, room, on_error);
                spare = text;
                Ok(parsed)
            }
            Ok(Some(Block::TooLong(lines))) => {
                let mut parsed = Parsed { lines, ..Parsed::default() };
                parsed.note(on_error, too_long(0));
                Ok(parsed)
            }
        };
        hand_on(number, parsed, queue, moved);
    }
}

/// Puts a block in line, and takes the sink as far as it can go.
fn hand_on(number: u64, parsed: Result<Parsed>, queue: &Mutex<Queue<'_>>, moved: &Condvar) {
    let mut line = lock(queue);
    line.waiting.insert(number, parsed);
    let Some(mut progress) = line.progress.take() else { return };
    loop {
        let turn = line.turn;
        let Some(parsed) = line.waiting.remove(&turn).filter(|_| !line.stop) else { break };
        line.turn += 1;
        drop(line);
        moved.notify_all();
        let outcome = parsed.and_then(|parsed| progress.take(parsed));
        line = lock(queue);
        match outcome {
            Ok(table) => line.spare.push(table),
            Err(error) => {
                line.failed = Some(error);
                line.stop = true;
            }
        }
    }
    line.progress = Some(progress);
    drop(line);
    moved.notify_all();
}

/// A bad row that is too long.
pub(super) fn too_long(line: u64) -> Bad {
    let reason = format!("longer than {} MiB, or a quote in it is not closed", MAX_RECORD >> 20);
    Bad { line, column: None, reason }
}

/// No lock is held while foreign code runs, so what a poisoned one guards is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Wakes the others if a worker panics; they would wait for its block for ever.
struct Alarm<'a, 'b> {
    queue: &'a Mutex<Queue<'b>>,
    moved: &'a Condvar,
}

impl Drop for Alarm<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(self.queue).stop = true;
            self.moved.notify_all();
        }
    }
}
