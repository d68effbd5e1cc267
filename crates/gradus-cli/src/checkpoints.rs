//! The checkpoint of a fit: whether there is one, what became of it, and what is said of it.

use crate::output::{Context, Failure, Outcome};
use crate::outputs::FilePlan;
use crate::progress::Bar;
use clap::Args;
use gradus_core::estimator::Estimator;
use gradus_core::iterate::Checkpoint;
use gradus_core::progress::{Event, Observer};
use gradus_file::output::Output;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

// Not a doc comment: clap would show it in place of the command's.
#[derive(Args)]
pub struct CheckpointArgs {
    /// Keep the state of the fit in a file while it runs, so that a killed fit can be resumed; a
    /// file that is there must be a checkpoint [default file: the output's name with .checkpoint]
    #[arg(long, value_name = "FILE", num_args = 0..=1, help_heading = "Checkpoints")]
    checkpoint: Option<Option<PathBuf>>,

    /// Seconds between two checkpoints at least
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, help_heading = "Checkpoints")]
    checkpoint_every: f64,

    /// Go on from the checkpoint, to the very same result as without interruption; --max-iter may be
    /// another, where the steps do not depend on it
    #[arg(long, help_heading = "Checkpoints")]
    resume: bool,

    /// Do not remove the checkpoint at the end, to go on later with --resume and a larger --max-iter
    #[arg(long, help_heading = "Checkpoints")]
    keep_checkpoint: bool,
}

/// The names of those flags.
pub const FLAGS: [&str; 4] = ["checkpoint", "checkpoint_every", "resume", "keep_checkpoint"];

/// The history of the checkpoint file.
#[derive(Default)]
struct Log {
    resumed: Option<usize>,
    written: usize,
    failed: usize,
    /// The last failure, unless a later write succeeded.
    failure: Option<String>,
}

/// Watches a fit, and its checkpoint.
pub struct CheckpointObserver {
    checkpoint: Option<Checkpoint>,
    /// Why there is none, though the model could keep one.
    unusable: Option<String>,
    keep: bool,
    bar: Bar,
    context: Context,
    log: Mutex<Log>,
}

impl CheckpointArgs {
    fn asked(&self) -> bool {
        self.checkpoint.is_some() || self.resume || self.keep_checkpoint
    }

    /// Refuses a checkpoint of a fit to data that is read while it runs.
    pub fn refuse_streamed(&self) -> Outcome<()> {
        if self.asked() {
            return Err(Failure::Usage(
                "a fit to data that is read while it runs keeps no checkpoints: leave out --checkpoint, \
                 --keep-checkpoint and --resume; an interrupted fit begins anew, to the same result"
                    .into(),
            ));
        }
        Ok(())
    }
}

impl CheckpointObserver {
    /// Checks what was asked for, before any work.
    pub fn plan(
        args: &CheckpointArgs,
        model: &dyn Estimator,
        output: &Output,
        plan: &mut FilePlan,
        context: Context,
    ) -> Outcome<Self> {
        if !(args.checkpoint_every >= 0.0 && args.checkpoint_every.is_finite()) {
            return Err(Failure::Usage(format!(
                "--checkpoint-every {}: must be a number of seconds, 0 or more",
                args.checkpoint_every
            )));
        }
        let asked = args.asked();
        let mut checkpoints = Self {
            checkpoint: None,
            unusable: None,
            keep: args.keep_checkpoint,
            bar: Bar::new(context.quiet || context.json),
            context,
            log: Mutex::default(),
        };
        if !model.traits().resumable {
            if asked {
                return Err(Failure::Usage(format!(
                    "`{}` keeps no checkpoints: leave out --checkpoint, --keep-checkpoint and \
                     --resume; an interrupted fit begins anew, to the same result",
                    model.name()
                )));
            }
            return Ok(checkpoints);
        }
        let path = match args.checkpoint.clone().flatten() {
            Some(path) => path,
            None if !output.is_stream() => with_suffix(output.path()),
            None if asked => {
                return Err(Failure::Usage(format!(
                    "--checkpoint: {} is not a regular file to name it after; give it a name",
                    output.path().display()
                )));
            }
            None => {
                checkpoints.unusable =
                    Some("the output is not a regular file to name it after".into());
                return Ok(checkpoints);
            }
        };
        match plan.checkpoint("--checkpoint", &path) {
            Ok(_) => {}
            Err(failure) if asked => return Err(failure),
            // Nobody asked for it: it would only be written on Ctrl-C.
            Err(failure) => {
                checkpoints.unusable = Some(failure.to_string());
                return Ok(checkpoints);
            }
        }
        if args.resume && !path.exists() {
            context.remark(format_args!("{}: no checkpoint there, beginning anew", path.display()));
        } else if asked && !args.resume && path.exists() {
            context.remark(format_args!(
                "{}: holds the state of an earlier fit, which will be replaced; --resume goes on \
                 from it",
                path.display()
            ));
        }
        let every = if asked {
            Duration::from_secs_f64(args.checkpoint_every)
        } else {
            // Only written when interrupted.
            Duration::MAX
        };
        checkpoints.checkpoint = Some(Checkpoint { path, every, resume: args.resume });
        Ok(checkpoints)
    }

    pub fn checkpoint(&self) -> Option<Checkpoint> {
        self.checkpoint.clone()
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the fit, interrupted now, can go on from the file.
    pub fn is_resumable(&self) -> bool {
        let log = self.log();
        self.checkpoint.is_some() && log.written > 0 && log.failure.is_none()
    }

    /// The checkpoint as JSON.
    pub fn to_json(&self, interrupted: bool) -> Value {
        let resumable = interrupted && self.is_resumable();
        let log = self.log();
        let kept = interrupted || self.keep;
        let file = self.checkpoint.as_ref().filter(|_| log.written > 0 && kept);
        json!({
            "file": file.map(|checkpoint| checkpoint.path.display().to_string()),
            "resumed_at": log.resumed,
            "resumable": resumable,
            "failed_writes": log.failed,
            "failure": log.failure,
        })
    }

    /// Repeats the failures to write.
    fn say_failures(&self) {
        let log = self.log();
        if log.failed > 0 {
            self.context.remark(format_args!(
                "warning: the checkpoint could not be written {}: {}",
                if log.failed == 1 { "once".to_owned() } else { format!("{} times", log.failed) },
                log.failure.as_deref().unwrap_or("the last time it could")
            ));
        }
    }

    /// Removes the checkpoint after a completed fit, if this fit wrote it or resumed from it.
    pub fn finish(&self) -> Outcome {
        self.say_failures();
        let ours = {
            let log = self.log();
            log.written > 0 || log.resumed.is_some()
        };
        match &self.checkpoint {
            Some(checkpoint) if ours && !self.keep => Ok(checkpoint.remove()?),
            _ => Ok(()),
        }
    }

    /// Removes the checkpoint of a fit that was interrupted before its first result, unless the fit resumed from it.
    pub fn discard(&self) {
        let useless = {
            let log = self.log();
            log.written > 0 && log.resumed.is_none()
        };
        if let Some(checkpoint) = self.checkpoint.as_ref().filter(|_| useless) {
            // It does no harm if it stays.
            let _ = checkpoint.remove();
        }
    }

    /// Prints how to resume an interrupted fit.
    pub fn report_interruption(&self, model: &str, output: &Path) {
        self.say_failures();
        let saved = format!("interrupted: the best model so far is in {}", output.display());
        let how = if let Some(checkpoint) = self.checkpoint.as_ref().filter(|_| self.is_resumable())
        {
            let command = resume_command();
            format!(", the state in {}; go on with\n  {command}", checkpoint.path.display())
        } else if let Some(reason) = &self.unusable {
            format!("; its state could not be kept ({reason}), so the fit would begin anew")
        } else if self.checkpoint.is_some() {
            "; its state could not be kept, so the fit would begin anew".into()
        } else {
            format!("; `{model}` keeps no checkpoints, so the fit would begin anew")
        };
        self.context.remark(format_args!("{saved}{how}"));
    }
}

impl Observer for CheckpointObserver {
    fn notice(&self, event: &Event<'_>) {
        match event {
            Event::Resumed { restart, iteration } => {
                self.log().resumed = Some(*iteration);
                let start = match restart {
                    0 => String::new(),
                    n => format!(" of start {}", n + 1),
                };
                self.context.remark(format_args!("resumed at iteration {iteration}{start}"));
            }
            Event::Checkpoint { failure: None } => {
                let mut log = self.log();
                log.written += 1;
                log.failure = None;
            }
            Event::Checkpoint { failure: Some(error) } => {
                let text = error.to_string();
                let mut log = self.log();
                log.failed += 1;
                if log.failure.as_ref() != Some(&text) {
                    let context = self.context;
                    self.bar.suspend(|| {
                        context.remark(format_args!(
                            "warning: cannot write the checkpoint, the fit goes on: {text}"
                        ));
                    });
                }
                log.failure = Some(text);
            }
            _ => {}
        }
        self.bar.notice(event);
    }
}

/// `m.gradus` → `m.gradus.checkpoint`.
fn with_suffix(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".checkpoint");
    name.into()
}

/// The command line of this process, with `--resume`.
fn resume_command() -> String {
    let mut words: Vec<String> = std::env::args_os()
        .map(|word| {
            let word = word.to_string_lossy().into_owned();
            let plain = !word.is_empty()
                && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,@+".contains(c));
            if plain { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
        })
        .collect();
    if let Some(first) = words.first_mut() {
        *first = "gradus".into();
    }
    if !words.iter().any(|word| word == "--resume") {
        words.push("--resume".into());
    }
    words.join(" ")
}
