//! A plan that is kept in a file: its keys are the long options, so that there is one parser of what they mean.

use std::path::Path;

use clap::{Args as _, Command, FromArgMatches as _};

use crate::cli::TrialArgs;
use crate::command_error::{CommandError, ErrorContext as _};

/// The command to be run, which has no option: a line, or a list of words; and commands that are compared, lines each.
const COMMAND: &str = "command";
const COMMANDS: &str = "commands";
/// A plan is typed by people; more is no plan.
const BYTES_MAX: u64 = 1 << 20;

/// The arguments of a plan in TOML: `blocks = 5`, `vary = ["arenas=default,2"]`, `command = "ruby jobs.rb"`. How the answer is
/// printed, and where runs are kept, is as `typed`.
pub(super) fn read(path: &Path, typed: &TrialArgs) -> Result<TrialArgs, CommandError> {
    let name = path.display();
    let file = std::fs::metadata(path).with_context(|| format!("{name} cannot be read"))?;
    if !file.is_file() || file.len() > BYTES_MAX {
        return Err(CommandError::new(format!("{name} is no file of a plan")));
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("{name} cannot be read"))?;
    let table: toml::Table = toml::from_str(&text)
        .map_err(|error| CommandError::new(format!("{name} is no TOML: {error}")))?;
    let words = words(&table).map_err(|why| CommandError::new(format!("{name}: {why}")))?;
    let options = TrialArgs::augment_args(Command::new("plan").no_binary_name(true));
    let matches = options.try_get_matches_from(words);
    let args = matches.and_then(|matches| TrialArgs::from_arg_matches(&matches));
    let args = args.map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        CommandError::new(format!("{name}: {first}"))
    })?;
    let is_plan = args.plan.is_none() && args.resume.is_none() && args.show.is_none();
    if !is_plan || args.in_machine {
        return Err(CommandError::new(format!("{name}: a plan names no other plan or trial")));
    }
    Ok(TrialArgs {
        directory: typed.directory.clone().or(args.directory),
        format: typed.format,
        all: typed.all || args.all,
        record: typed.record || args.record,
        dry_run: typed.dry_run || args.dry_run,
        ..args
    })
}

/// A plan as it would be typed.
fn words(table: &toml::Table) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    let is_command = |key: &str| [COMMAND, COMMANDS].contains(&key);
    for (key, value) in table.iter().filter(|(key, _)| !is_command(key)) {
        match value {
            toml::Value::Boolean(true) => all.push(format!("--{key}")),
            toml::Value::Boolean(false) => {}
            value => {
                let values = texts(value).ok_or_else(|| format!("{key} is no text or number"))?;
                all.extend(values.into_iter().map(|value| format!("--{key}={value}")));
            }
        }
    }
    if let Some(commands) = table.get(COMMANDS) {
        all.extend(texts(commands).ok_or("commands is no list of texts")?);
    }
    match table.get(COMMAND) {
        Some(toml::Value::String(line)) => all.push(line.clone()),
        Some(value) => {
            all.push("--".to_owned());
            all.extend(texts(value).ok_or("command is no text, and no list of texts")?);
        }
        None => {}
    }
    Ok(all)
}

/// A value, or each of a list, as it would be typed.
fn texts(value: &toml::Value) -> Option<Vec<String>> {
    match value {
        toml::Value::String(text) => Some(vec![text.clone()]),
        toml::Value::Integer(number) => Some(vec![number.to_string()]),
        toml::Value::Float(number) => Some(vec![number.to_string()]),
        toml::Value::Array(all) => {
            let texts: Option<Vec<Vec<String>>> = all.iter().map(texts).collect();
            Some(texts?.concat())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Result<Vec<String>, String> {
        words(&toml::from_str(text).unwrap())
    }

    #[test]
    fn keys_are_the_long_options() {
        let plan = "command = ['ruby', 'jobs.rb']\nblocks = 5\nvary = ['arenas=default,2']\nno-control = true\nvm = false\n";
        assert_eq!(
            typed(plan).unwrap(),
            ["--blocks=5", "--no-control", "--vary=arenas=default,2", "--", "ruby", "jobs.rb"]
        );
        assert_eq!(typed("[blocks]\nn = 5\n").unwrap_err(), "blocks is no text or number");
    }
}
