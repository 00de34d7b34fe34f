//! Output: stdout is the answer, stderr is progress and warnings.

use std::io::{ErrorKind, IsTerminal, Write};
use std::ops::ControlFlow;

use indicatif::{ProgressBar, ProgressStyle};
use jiff::tz::TimeZone;
use report::text::Detail;
use report::{ColourMode, Screen};
use sampler::Progress;
use timeline::plain::escape;
use units::Span;

use crate::cli::ColorChoice;
use crate::command_error::CommandError;
use crate::{interrupt, journal};

/// Colour and width of the output.
#[derive(Debug)]
pub(crate) struct Output {
    color: bool,
    columns: usize,
}

impl Output {
    pub(crate) fn new(choice: ColorChoice) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let color = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let wanted = std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
                let able = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
                terminal && wanted && able
            }
        };
        let columns = rustix::termios::tcgetwinsize(std::io::stdout())
            .ok()
            .map(|size| usize::from(size.ws_col))
            .filter(|columns| *columns > 0);
        Self { color, columns: columns.unwrap_or(80) }
    }

    /// Returns the screen for text.
    pub(crate) fn screen(&self) -> Screen {
        let mut screen = Screen::of_width(self.columns);
        screen.zone = TimeZone::system();
        screen.unbroken = !std::io::stdout().is_terminal();
        if self.color {
            screen.colour = ColourMode::Ansi;
        }
        screen
    }

    /// The same, with every detail if requested.
    pub(crate) fn screen_with(&self, every_detail: bool) -> Screen {
        let mut screen = self.screen();
        if every_detail {
            screen.detail = Detail::All;
        }
        screen
    }

    /// Prints the answer. A closed pipe (`| head`) is no error.
    pub(crate) fn print(&self, text: &str) -> Result<(), CommandError> {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        match written {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(CommandError::from(error).context("cannot write the answer"))
            }
            _ => Ok(()),
        }
    }

    /// An error that ends the command.
    pub(crate) fn error(&self, error: &CommandError) {
        say(&format!("error: {}", escaped_lines(&error.to_string()).join("\n  ")));
        if let Some(help) = error.help() {
            say(&format!("help: {}", escaped_lines(help).join("\n")));
        }
    }

    /// A problem that does not end the command.
    pub(crate) fn warn(&self, text: &str) {
        say(&format!("warning: {}", escape(text)));
    }

    /// A note in addition to the answer.
    pub(crate) fn note(&self, text: &str) {
        say(&escape(text));
    }

    /// Runs `run`, which samples this host for a while, with a progress bar. Ctrl-C ends it early.
    pub(crate) fn watching<T>(
        &self,
        what: &str,
        lasts: Span,
        run: impl FnOnce(Progress<'_>) -> T,
    ) -> T {
        let total = lasts.as_nanos();
        let bar = self.progress(what, total);
        let interrupted = interrupt::listen();
        let result = run(&mut |elapsed| {
            bar.set_position(elapsed.as_nanos().min(total));
            if interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        bar.finish_and_clear();
        result
    }

    /// Shows a spinner for work of unknown length; only on a terminal.
    pub(crate) fn busy(&self, what: &str) -> ProgressBar {
        if !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new_spinner();
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        bar
    }

    /// Runs `run`, which reports the share that is done, with a progress bar.
    pub(crate) fn reading<T>(&self, what: &str, run: impl FnOnce(&mut dyn FnMut(f64)) -> T) -> T {
        const STEPS: u32 = 1000;
        let bar = self.progress(what, u64::from(STEPS));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of 1000
        let result = run(&mut |share| bar.set_position((share * f64::from(STEPS)) as u64));
        bar.finish_and_clear();
        result
    }

    /// Shows a progress bar; only on a terminal.
    pub(crate) fn progress(&self, what: &str, total: u64) -> ProgressBar {
        if !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(total);
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {percent} %") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar
    }
}

/// Some errors hold lines of a log; each is escaped alone, and none looks like one of memtide's own.
fn escaped_lines(text: &str) -> Vec<String> {
    text.lines().map(|line| escape(line).into_owned()).collect()
}

/// Writes a message. If even that fails, the exit code remains.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}{line}", journal::prefix(line));
}
