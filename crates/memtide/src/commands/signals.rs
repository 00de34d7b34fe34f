//! `memtide signals`: the catalogue of signals, explained.

use report::SignalEntry;
use timeline::{SignalDef, signals};

use crate::cli::{Format, SignalsArgs};
use crate::command_error::{CommandError, bail};
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &SignalsArgs, output: &Output) -> Result<Exit, CommandError> {
    let found: Vec<&SignalDef> = signals::ALL
        .iter()
        .filter(|def| args.name.as_deref().is_none_or(|name| matches(def, name)))
        .collect();
    if let (true, Some(name)) = (found.is_empty(), &args.name) {
        bail!(
            "no signal, kernel field or other tool's name contains `{name}`; `memtide signals` \
             lists all"
        );
    }
    let entries: Vec<SignalEntry> = found.into_iter().map(SignalEntry::from).collect();
    let screen = output.screen();
    let text = match args.answer.get() {
        Format::Json => report::json(&entries)? + "\n",
        // A few signals are explained in full, many are listed.
        Format::Text if args.name.is_some() && entries.len() <= 8 => entries
            .iter()
            .map(|entry| report::text::signal(entry, &screen))
            .collect::<Vec<_>>()
            .join("\n"),
        Format::Text => report::text::signals(&entries, &screen),
    };
    output.print(&text)?;
    Ok(Exit::Ok)
}

/// Whether one of a signal's names contains the text; an exact memtide name selects that signal alone.
fn matches(def: &SignalDef, name: &str) -> bool {
    if signals::by_name(name).is_some() {
        return def.name == name;
    }
    let name = name.to_lowercase();
    [def.name, def.field, def.sar, def.pcp, def.node_exporter]
        .into_iter()
        .any(|known| known.to_lowercase().contains(&name))
}
