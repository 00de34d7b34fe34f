//! `memtide rules`: the catalogue of rules, explained.

use report::RuleEntry;

use crate::cli::{Format, RulesArgs};
use crate::command_error::{CommandError, bail};
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &RulesArgs, output: &Output) -> Result<Exit, CommandError> {
    let rules = match &args.id {
        None => RuleEntry::all(),
        Some(id) => match RuleEntry::by_id(id) {
            Some(rule) => vec![rule],
            None => bail!("there is no rule `{id}`; `memtide rules` lists them{}", nearest(id)),
        },
    };
    if args.prometheus {
        output.print(&report::prometheus(&rules))?;
        return Ok(Exit::Ok);
    }
    let text = match (args.answer.get(), rules.as_slice()) {
        (Format::Json, rules) => report::json(&rules)? + "\n",
        (Format::Text, [rule]) => report::text::rule(rule, &output.screen()),
        (Format::Text, rules) => report::text::rules(rules, &output.screen()),
    };
    output.print(&text)?;
    Ok(Exit::Ok)
}

/// Returns the rules that share a word of their id with the typed text.
fn nearest(id: &str) -> String {
    let near: Vec<_> = diagnose::rules::ALL
        .iter()
        .map(|rule| rule.id)
        .filter(|known| id.split('-').any(|word| word.len() > 2 && known.contains(word)))
        .collect();
    if near.is_empty() { String::new() } else { format!("; near: {}", near.join(", ")) }
}
