//! The list of commands in `memtide --help`, in groups. clap has headings for options only, so the list is written into the
//! template of the help; parsing, `memtide help COMMAND`, completions and man pages do not see it.

use std::fmt::Write;

use clap::Command;
use clap::builder::StyledStr;

/// Headings in the order of the help, each with its commands. A command that is in none fails a test.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Now", &["check", "top", "where", "profile"]),
    ("Look back", &["record", "events", "growth", "headroom", "report"]),
    ("One process", &["explain"]),
    ("Prove", &["trial", "job", "compare", "lab"]),
    ("Many hosts and machines", &["serve", "capture", "convert", "export", "mcp"]),
    ("Reference", &["rules", "signals", "completions", "man"]),
];

/// The column of the sentences, behind the longest name.
const ABOUT_COLUMN: usize = 15;

/// Returns the same command with a help that lists its commands in groups.
pub(super) fn in_groups(command: Command) -> Command {
    let template = template(&command);
    command.help_template(template)
}

fn template(command: &Command) -> StyledStr {
    let heading = command.get_styles().get_header();
    let mut text = StyledStr::new();
    push(&mut text, "{before-help}{about-with-newline}\n{usage-heading} {usage}\n");
    for (name, members) in GROUPS {
        push(&mut text, &format!("\n{heading}{name}:{heading:#}\n"));
        for member in members.iter().filter_map(|member| command.find_subcommand(member)) {
            let about = member.get_about().map(ToString::to_string).unwrap_or_default();
            push(&mut text, &line(command, member.get_name(), &about));
        }
    }
    push(&mut text, &line(command, "help", "Print the help of a command: memtide help check"));
    push(&mut text, &format!("\n{heading}Options:{heading:#}\n{{options}}{{after-help}}"));
    text
}

fn line(command: &Command, name: &str, about: &str) -> String {
    let literal = command.get_styles().get_literal();
    let gap = " ".repeat(ABOUT_COLUMN.saturating_sub(2 + name.len()));
    format!("  {literal}{name}{literal:#}{gap}{about}\n")
}

fn push(text: &mut StyledStr, more: &str) {
    // Writing into a text in memory cannot fail.
    let _ = text.write_str(more);
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::super::Cli;
    use super::*;

    fn printed(arguments: &[&str]) -> String {
        let error = in_groups(Cli::command()).try_get_matches_from(arguments).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DisplayHelp, "{error}");
        error.to_string()
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, members)| *members).copied().collect();
        let command = Cli::command();
        let mut commands: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        commands.sort_unstable();
        assert_eq!(grouped, commands, "left: GROUPS, right: the commands");
    }

    #[test]
    fn the_list_of_commands_fits_80_columns() {
        let help = printed(&["memtide", "--help"]);
        let list: Vec<&str> = help.lines().take_while(|line| *line != "Options:").collect();
        assert_eq!(list.iter().filter(|line| line.ends_with(':')).count(), GROUPS.len(), "{help}");
        let wide: Vec<_> = list.iter().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{wide:#?}");
        let squeezed = list
            .iter()
            .filter(|line| line.starts_with("  "))
            .find(|line| !line.get(ABOUT_COLUMN - 1..).is_some_and(|rest| rest.starts_with(' ')));
        assert_eq!(squeezed, None);
    }

    #[test]
    fn the_help_of_one_command_stays_its_own() {
        let help = printed(&["memtide", "help", "check"]);
        assert!(help.contains("Usage: memtide check") && !help.contains("Look back:"), "{help}");
        assert_eq!(help, printed(&["memtide", "check", "--help"]));
        let short = printed(&["memtide", "-h"]);
        assert!(short.contains("Look back:\n  record"), "{short}");
    }
}
