//! `memtide top`: what is wrong, live or back in time, in the terminal.

mod feed;

use std::io::IsTerminal;

use report::text::top::TopView;

use crate::cli::{Format, TopArgs};
use crate::command_error::{CommandError, bail};
use crate::exit::Exit;
use crate::output::Output;
use feed::feed;

/// Lines of a frame on paper: of a tall terminal.
const LINES: usize = 60;

pub(crate) fn run(args: &TopArgs, output: &Output) -> Result<Exit, CommandError> {
    let view = TopView { panel: args.panel(), ..TopView::default() };
    let is_json = args.answer.get() == Format::Json;
    let has_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if !(is_json || args.once || has_terminal) {
        bail!("`memtide top` needs a terminal; `memtide top --once` prints one frame");
    }
    let feed = feed(args, output)?;
    if is_json {
        output.print(&(report::json(&top::report(feed)?)? + "\n"))?;
    } else if args.once {
        output.print(&top::once(feed, &view, (&output.screen(), LINES))?)?;
    } else {
        top::run(feed, output.screen(), view)?;
    }
    Ok(Exit::Ok)
}
