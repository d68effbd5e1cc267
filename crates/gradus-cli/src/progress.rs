//! The progress bar, and Ctrl-C.

use gradus_core::progress::{Event, Observer, Stop};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Steps of the bar for one iteration.
const FINE: u64 = 1000;

/// Draws the course of a fit on standard error if that is a terminal.
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    pub fn new(quiet: bool) -> Self {
        let bar = ProgressBar::no_length();
        bar.set_draw_target(if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        });
        if let Ok(style) = ProgressStyle::with_template(&template(width())) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self { bar }
    }

    /// Writes to the terminal without getting in the way of the bar.
    pub fn suspend(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }
}

/// The columns of the terminal.
pub fn width() -> u16 {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| width.0)
}

/// A line that fits this many columns: what comes last is cut off at the edge.
fn template(width: u16) -> String {
    match width {
        ..40 => "{prefix} {wide_msg}".to_owned(),
        40..70 => "{prefix} {bar:10.cyan/blue} {eta:>4} {wide_msg}".to_owned(),
        _ => "{prefix} {bar:24.cyan/blue} {eta:>4} left · {wide_msg}".to_owned(),
    }
}

impl Observer for Bar {
    fn notice(&self, event: &Event<'_>) {
        match event {
            Event::Started { model, max_iterations, done } => {
                self.bar.set_prefix((*model).to_owned());
                self.bar.set_length(*max_iterations as u64 * FINE);
                self.bar.set_position(*done as u64 * FINE);
                self.bar.reset_eta();
                self.bar.set_message("starting");
                self.bar.enable_steady_tick(Duration::from_millis(200));
            }
            Event::Choosing { model, trial, what } => {
                self.bar.set_prefix((*model).to_owned());
                self.bar.set_message(format!("choosing, trial {trial}: {what}"));
                self.bar.enable_steady_tick(Duration::from_millis(200));
            }
            Event::Within(share) => {
                let whole = self.bar.position() / FINE * FINE;
                self.bar.set_position(whole + (share * (FINE - 1) as f64) as u64);
            }
            Event::Iteration { point, metric, .. } => {
                self.bar.set_position((self.bar.position() / FINE + 1) * FINE);
                let score =
                    point.validation.map(|score| format!(" · held-out {metric} {score:.4}"));
                let measures = point.measures.iter();
                let measures = measures.map(|m| format!(" · {} {:.4}", m.name, m.value));
                self.bar.set_message(format!(
                    "iteration {} · objective {:.6e}{}{}",
                    point.iteration,
                    point.objective,
                    score.unwrap_or_default(),
                    measures.collect::<String>()
                ));
            }
            Event::Finished => self.bar.finish_and_clear(),
            _ => {}
        }
    }
}

/// Counts things done, on standard error if that is a terminal.
pub struct Counter {
    bar: ProgressBar,
}

impl Counter {
    /// `total` is `None` where nobody knows how many there will be.
    pub fn new(total: Option<usize>, what: &str, quiet: bool) -> Self {
        let bar = total.map_or_else(ProgressBar::no_length, |total| ProgressBar::new(total as u64));
        bar.set_draw_target(if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        });
        let template = match total {
            Some(_) if width() < 70 => "{human_pos} of {human_len} {wide_msg}",
            Some(_) => "{bar:24.cyan/blue} {eta:>4} left · {human_pos} of {human_len} {wide_msg}",
            None => "{spinner} {human_pos} {wide_msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.set_message(what.to_owned());
        Self { bar }
    }

    pub fn advance(&self, by: usize) {
        self.bar.inc(by as u64);
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The flag that Ctrl-C raises.
static STOP: LazyLock<Stop> = LazyLock::new(Stop::new);

/// Whether somebody looks at it.
static HEEDED: AtomicBool = AtomicBool::new(false);

/// Ends the command on Ctrl-C and its like without leaving unfinished files. A command that looks at
/// the flag is asked to stop first; the second signal ends it at once.
pub fn watch_signals() {
    let stays = ignores_hangup();
    // Fails only if a handler is already there; then Ctrl-C keeps its usual meaning.
    let _ = ctrlc::set_handler(|| {
        if HEEDED.load(Ordering::Relaxed) && !STOP.requested() {
            STOP.request();
        } else {
            gradus_file::output::remove_unfinished();
            std::process::exit(130);
        }
    });
    // The handler takes the place of what `nohup` has set.
    if stays {
        ignore_hangup();
    }
}

/// The flag that Ctrl-C raises. A second Ctrl-C ends the process at once.
pub fn stop_on_ctrl_c() -> Stop {
    HEEDED.store(true, Ordering::Relaxed);
    STOP.clone()
}

/// Whether whoever started us wants the end of the terminal ignored, as `nohup` does.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    // SAFETY: the call only fills in the structure, for which zeros are a valid value.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut now) == 0
            && now.sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(unix)]
fn ignore_hangup() {
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}

#[cfg(not(unix))]
fn ignores_hangup() -> bool {
    false
}

#[cfg(not(unix))]
fn ignore_hangup() {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// A terminal of some width that remembers what was written to it.
    #[derive(Clone, Debug)]
    struct Paper(u16, Arc<Mutex<Vec<String>>>);

    impl Paper {
        fn put(&self, text: &str) -> std::io::Result<()> {
            self.1.lock().unwrap().push(text.to_owned());
            Ok(())
        }
    }

    impl indicatif::TermLike for Paper {
        fn width(&self) -> u16 {
            self.0
        }
        fn move_cursor_up(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> std::io::Result<()> {
            self.put(text)
        }
        fn write_str(&self, text: &str) -> std::io::Result<()> {
            self.put(text)
        }
        fn clear_line(&self) -> std::io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_bar_fits_terminals_of_any_width() {
        for width in [20, 39, 40, 55, 69, 70, 80, 200] {
            let paper = Paper(width, Arc::default());
            let bar = Bar::new(true);
            bar.bar.set_style(ProgressStyle::with_template(&template(width)).unwrap());
            bar.bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(paper.clone())));
            bar.notice(&Event::Started { model: "elasticnet", max_iterations: 1000, done: 0 });
            let point = gradus_core::report::Iteration {
                restart: 0,
                iteration: 123,
                objective: -1.234567e-100,
                validation: Some(0.123456),
                measures: Vec::new(),
            };
            bar.notice(&Event::Iteration { point: &point, metric: "log loss", seconds: 1.0 });
            bar.bar.tick();
            let written = paper.1.lock().unwrap().clone();
            assert!(written.iter().any(|text| text.starts_with("elasticnet")), "{written:?}");
            for text in &written {
                assert!(text.chars().count() <= width.into(), "{width}: {text:?}");
            }
        }
    }
}
