//! `memtide rules`: the catalogue of rules, explained.

use report::RuleEntry;
use report::model::AlertFile;

use crate::cli::{Format, RulesArgs};
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &RulesArgs, output: &Output) -> Result<Exit, CommandError> {
    let rules = match &args.id {
        None => RuleEntry::all(),
        Some(id) => match RuleEntry::by_id(id) {
            Some(rule) => vec![rule],
            None => return Err(unknown(id)),
        },
    };
    if args.prometheus {
        let file = AlertFile {
            metrics: args.metrics.into(),
            is_object: args.kubernetes,
            runbooks: args.runbook_url.clone(),
        };
        output.print(&if args.id.is_none() { file.all() } else { file.of(&rules) })?;
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

/// There is no such rule; the nearest ones may be meant.
fn unknown(id: &str) -> CommandError {
    let near = answers::nearest_rules(id);
    let (is, near) = (if near.len() == 1 { "is" } else { "are" }, near.join(", "));
    let help = match near.as_str() {
        "" => "`memtide rules` lists all".to_owned(),
        near => format!("the nearest {is} {near}; `memtide rules` lists all"),
    };
    CommandError::new(format!("there is no rule `{id}`")).with_help(help)
}
