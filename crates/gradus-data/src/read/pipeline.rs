//! Parses blocks in parallel and hands them on in order.
//!
//! As many workers as the pool has threads, all alike: each takes the next block from the input,
//! parses it, and, if it is the next in order, hands it and those waiting behind it to the sink.
//! Blocks ahead of their turn wait; when too many do, workers pause, which bounds the memory. A
//! worker only ever waits for a block that another running worker holds, so there is no deadlock
//! even in a pool with one thread.

use super::blocks::{Block, Blocks, Dialect};
use super::options::OnError;
use super::source::Input;
use gradus_base::{Error, Result};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};

/// How many bad rows are described.
pub(crate) const MOST_REPORTED: usize = 5;

/// A bad row: its line, counted from 0 at the start of the block, the column to blame, and why.
#[derive(Debug)]
pub(crate) struct Bad {
    pub line: u64,
    pub column: Option<String>,
    pub reason: String,
}

/// The rows of a block.
pub(crate) trait Rows: Default + Send {
    /// How many there are.
    fn n_rows(&self) -> usize;

    /// Without rows, but with the room for them.
    fn cleared(self) -> Self;
}

/// The consumer of rows, block by block and in order, with the number of lines before the block.
pub(crate) type Sink<'a, R> = &'a mut (dyn FnMut(&mut R, u64) -> Result<()> + Send);

/// A block, parsed.
#[derive(Debug, Default)]
pub(crate) struct Parsed<R> {
    pub rows: R,
    /// Line ends in the block.
    pub lines: u64,
    /// The first few bad rows.
    pub bad: Vec<Bad>,
    pub n_bad: u64,
}

impl<R> Parsed<R> {
    /// Notes a bad row; tells whether to go on.
    pub(crate) fn note(&mut self, on_error: OnError, bad: Bad) -> bool {
        self.n_bad += 1;
        if self.bad.len() < MOST_REPORTED {
            self.bad.push(bad);
        }
        on_error == OnError::Skip
    }
}

/// A parser of whole records.
pub(crate) trait Parser<R>: Sync {
    /// Parses `text` into `room`, which is empty.
    fn parse(&self, text: &[u8], room: R, on_error: OnError) -> Parsed<R>;
}

/// The totals of the blocks handed on so far.
struct Progress<'a, R> {
    sink: Sink<'a, R>,
    name: String,
    on_error: OnError,
    rows: u64,
    skipped: u64,
    first_errors: Vec<String>,
    lines: u64,
}

impl<R: Rows> Progress<'_, R> {
    /// Takes the rows of a block; gives the room for them back for the next one.
    fn take(&mut self, mut parsed: Parsed<R>) -> Result<R> {
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
            if self.first_errors.len() < MOST_REPORTED {
                self.first_errors.push(error.to_string());
            }
        }
        self.rows += parsed.rows.n_rows() as u64;
        self.skipped += parsed.n_bad;
        (self.sink)(&mut parsed.rows, self.lines)?;
        self.lines += parsed.lines;
        Ok(parsed.rows.cleared())
    }
}

struct Queue<'a, R> {
    /// Missing while a worker is busy with it.
    progress: Option<Progress<'a, R>>,
    waiting: BTreeMap<u64, Result<Parsed<R>>>,
    /// Room to use again: fresh would cost a page fault for every 4 KiB.
    spare: Vec<R>,
    /// The block whose turn it is.
    turn: u64,
    /// The error that ends reading, if there is one.
    failed: Option<Error>,
    /// There is nothing more to do: reading failed, or a worker panicked.
    stop: bool,
}

struct Reader<'a, 'b> {
    blocks: Blocks<'a, 'b>,
    next: u64,
    done: bool,
}

/// How an input is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Lines taken off the input already.
    pub lines_before: u64,
    /// How quotes are found; `None` if the format has none.
    pub quotes: Option<Dialect>,
    /// The longest record.
    pub limit: usize,
    /// Bytes in a block.
    pub block: usize,
    pub on_error: OnError,
}

/// The totals of reading.
#[derive(Debug)]
pub(crate) struct Totals {
    pub rows: u64,
    pub skipped: u64,
    pub first_errors: Vec<String>,
}

/// Reads all of `input` into the sink.
pub(crate) fn run<R: Rows>(
    input: &mut Input<'_>,
    plan: Plan,
    parser: &dyn Parser<R>,
    sink: Sink<'_, R>,
) -> Result<Totals> {
    let progress = Progress {
        sink,
        name: input.name.clone(),
        on_error: plan.on_error,
        rows: 0,
        skipped: 0,
        first_errors: Vec::new(),
        lines: plan.lines_before,
    };
    let n_workers = rayon::current_num_threads();
    let reader = Mutex::new(Reader { blocks: Blocks::new(input, plan), next: 0, done: false });
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
            scope.spawn(|_| work(&reader, &queue, &moved, parser, plan, 2 * n_workers));
        }
    });
    drop(reader);
    let queue = queue.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    match (queue.failed, queue.progress) {
        (Some(error), _) => Err(error),
        (None, Some(progress)) => Ok(Totals {
            rows: progress.rows,
            skipped: progress.skipped,
            first_errors: progress.first_errors,
        }),
        (None, None) => unreachable!("every worker gives the progress back or fails"),
    }
}

fn work<R: Rows>(
    reader: &Mutex<Reader<'_, '_>>,
    queue: &Mutex<Queue<'_, R>>,
    moved: &Condvar,
    parser: &dyn Parser<R>,
    plan: Plan,
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
                let parsed = parser.parse(&text, room, plan.on_error);
                spare = text;
                Ok(parsed)
            }
            Ok(Some(Block::TooLong(lines))) => {
                let mut parsed = Parsed { lines, ..Parsed::default() };
                parsed.note(plan.on_error, too_long(0, plan.limit));
                Ok(parsed)
            }
        };
        hand_on(number, parsed, queue, moved);
    }
}

/// Puts a block in line, and takes the sink as far as it can go.
fn hand_on<R: Rows>(
    number: u64,
    parsed: Result<Parsed<R>>,
    queue: &Mutex<Queue<'_, R>>,
    moved: &Condvar,
) {
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
            Ok(room) => line.spare.push(room),
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
pub(crate) fn too_long(line: u64, limit: usize) -> Bad {
    let reason = format!("longer than {} MiB, or a quote in it is not closed", limit >> 20);
    Bad { line, column: None, reason }
}

/// No lock is held while foreign code runs, so what a poisoned one guards is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Wakes the others if a worker panics; they would wait for its block for ever.
struct Alarm<'a, 'b, R> {
    queue: &'a Mutex<Queue<'b, R>>,
    moved: &'a Condvar,
}

impl<R> Drop for Alarm<'_, '_, R> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(self.queue).stop = true;
            self.moved.notify_all();
        }
    }
}
