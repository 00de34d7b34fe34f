//! A command as it is typed, and its words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A command as it was typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialCommand {
    /// A program with its arguments.
    Program(Vec<String>),
    /// A line; a shell reads it where it has more than words.
    Line(String),
}

impl TrialCommand {
    /// The program and its arguments.
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::Program(words) => words.clone(),
            Self::Line(line) => match plain_words(line) {
                Some(words) => words,
                None => vec!["/bin/sh".to_owned(), "-c".to_owned(), line.clone()],
            },
        }
    }
}

impl std::fmt::Display for TrialCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Line(line) => f.write_str(line),
            Self::Program(words) => {
                let words: Vec<String> = words.iter().map(|word| report::quoted(word)).collect();
                f.write_str(&words.join(" "))
            }
        }
    }
}

/// The words of a line that needs no shell: a shell of its own would be a process more, and its memory.
fn plain_words(line: &str) -> Option<Vec<String>> {
    const OF_SHELLS: &[char] =
        &['|', '&', ';', '<', '>', '(', ')', '$', '`', '*', '?', '[', '~', '{', '#', '\n', '!'];
    let words = shlex::split(line).filter(|words| !words.is_empty())?;
    let is_plain =
        !line.contains(OF_SHELLS) && words.first().is_some_and(|first| !first.contains('='));
    is_plain.then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_only_what_needs_one() {
        let words = |line: &str| TrialCommand::Line(line.to_owned()).words();
        assert_eq!(words("./import.sh 'big file.csv'"), ["./import.sh", "big file.csv"]);
        for line in ["a | b", "N=1 ./run", "cat *.csv", "echo $HOME", "a && b"] {
            assert_eq!(words(line), ["/bin/sh", "-c", line]);
        }
        let program = TrialCommand::Program(vec!["a b".into(), "c".into()]);
        assert_eq!(program.to_string(), "'a b' c");
        let options = TrialCommand::Program(vec!["db".into(), "--user=root".into()]);
        assert_eq!(options.to_string(), "db --user=root");
    }
}
