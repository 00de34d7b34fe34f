//! Messages that a text quotes as an example: a manual that explains what a kill looks like, a question whether such a line is
//! there. Only words that leave open whether it happened count: a report says "I get messages like this", too. A literal of a
//! source file is no message either.

/// Words of the messages that a text quotes alone.
const MESSAGES: [&str; 4] =
    ["Out of memory", "Memory cgroup out of memory", "Killed process", "invoked oom-killer"];
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
    if introduces(front) || is_in_literal(front) {
        return true;
    }
    let is_prose = |line: &&&str| line.contains(|c: char| c.is_alphanumeric());
    let mut above = before.iter().rev().take(GAP_MAX);
    // Words behind the prefix of a log are a sentence of their own.
    let is_alone = !front.contains(|c: char| c.is_alphabetic());
    is_alone && above.find(is_prose).is_some_and(|line| introduces(line))
}

/// Whether a text ends within a literal of a program: `pr_warn("`, `printk(KERN_ERR "`, `let text = "java `. A log of
/// fields has no blank before its quote (`msg="`), and JSON a colon.
fn is_in_literal(front: &str) -> bool {
    /// The name of the process may stand between the quote and the message.
    const WORDS_MAX: usize = 2;
    let Some((code, inside)) = front.rsplit_once(['"', '\'']) else {
        return false;
    };
    let code = code.trim_end_matches(['b', 'r', 'f', '#', '&']);
    let is_level = || {
        let word = code.trim_end().rsplit(['(', ' ']).next();
        word.is_some_and(|word| word.starts_with("KERN_"))
    };
    inside.split_whitespace().count() <= WORDS_MAX
        && (code.ends_with('(') || code.ends_with(" = ") || is_level())
}

/// Whether the last sentence of a text has the words.
fn introduces(text: &str) -> bool {
    if text.len() > SENTENCE_LEN_MAX {
        return false;
    }
    let last = text.rsplit(['.', '!', '?']).find(|part| part.trim().len() > 1);
    let sentence = last.unwrap_or_default().to_ascii_lowercase() + " ";
    PHRASES.iter().any(|phrase| sentence.contains(phrase))
}
