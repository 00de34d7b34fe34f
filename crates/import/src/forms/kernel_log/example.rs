//! Messages that a text quotes as an example: a manual that explains what a kill looks like, a question whether such a line is
//! there. Only words that leave open whether it happened count: a report says "I get messages like this", too.

/// Words of the messages that a text quotes alone.
const MESSAGES: [&str; 4] = [
    "Out of memory",
    "Memory cgroup out of memory",
    "Killed process",
    "invoked oom-killer",
];
/// Words before an example, in lower case.
const PHRASES: [&str; 10] = [
    "if you see ",
    "do you see ",
    "can you see ",
    "you may see ",
    "you might see ",
    "expected to see ",
    "a typical message ",
    "a typical line ",
    "a typical entry ",
    "typically looks like ",
];
/// A blank line and the fence of a code block may stand between the words and the example.
const GAP_MAX: usize = 3;
/// A longer line is no sentence.
const SENTENCE_LEN_MAX: usize = 1000;

/// Whether a text introduces the message in a line as an example: in the line, or at the end of the text above it.
pub(super) fn is_example(line: &str, before: &[&str]) -> bool {
    if line.len() > SENTENCE_LEN_MAX {
        return false;
    }
    let starts = MESSAGES.iter().filter_map(|words| line.find(words));
    let Some(front) = starts.min().and_then(|at| line.get(..at)) else {
        return false;
    };
    if introduces(front) {
        return true;
    }
    let is_prose = |line: &&&str| line.contains(|c: char| c.is_alphanumeric());
    let mut above = before.iter().rev().take(GAP_MAX);
    // Words behind the prefix of a log are a sentence of their own.
    let is_alone = !front.contains(|c: char| c.is_alphabetic());
    is_alone && above.find(is_prose).is_some_and(|line| introduces(line))
}

/// Whether the last sentence of a text has the words.
fn introduces(text: &str) -> bool {
    if text.len() > SENTENCE_LEN_MAX {
        return false;
    }
    let last = text
        .rsplit(['.', '!', '?'])
        .find(|part| part.trim().len() > 1);
    let sentence = last.unwrap_or_default().to_ascii_lowercase() + " ";
    PHRASES.iter().any(|phrase| sentence.contains(phrase))
}
