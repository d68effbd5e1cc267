//! The progress bar, and Ctrl-C.

use gradus::core::progress::{Event, Observer, Stop};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::OnceLock;
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
        let style = ProgressStyle::with_template("{prefix} {bar:24.cyan/blue} {msg} · {eta} left");
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self { bar }
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
            Event::Within(share) => {
                let whole = self.bar.position() / FINE * FINE;
                self.bar.set_position(whole + (share * (FINE - 1) as f64) as u64);
            }
            Event::Iteration { point, metric, .. } => {
                self.bar.set_position((self.bar.position() / FINE + 1) * FINE);
                let held = point.validation.map(|score| format!(" · held-out {metric} {score:.4}"));
                self.bar.set_message(format!(
                    "iteration {} · objective {:.6e}{}",
                    point.iteration,
                    point.objective,
                    held.unwrap_or_default()
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
            Some(_) => "{bar:24.cyan/blue} {human_pos} of {human_len} {msg} · {eta} left",
            None => "{spinner} {human_pos} {msg}",
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

/// The flag that Ctrl-C raises. A second Ctrl-C ends the process at once.
pub fn stop_on_ctrl_c() -> Stop {
    static STOP: OnceLock<Stop> = OnceLock::new();
    STOP.get_or_init(|| {
        let stop = Stop::new();
        let raised = stop.clone();
        // Fails only if a handler is already there; then Ctrl-C keeps its usual meaning.
        let _ = ctrlc::set_handler(move || {
            if raised.requested() {
                std::process::exit(130);
            }
            raised.request();
        });
        stop
    })
    .clone()
}
