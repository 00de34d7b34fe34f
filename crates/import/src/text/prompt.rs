//! Lines around pasted blocks that describe them: the command behind a shell prompt, the host, the time.

use units::{Span, WallClock};

use crate::text::times::PrintedTime;

/// The host and the command on a line.
pub(crate) fn host_and_command(line: &str) -> (Option<&str>, Option<&str>) {
    let behind = behind_prompt(line);
    let host = match behind {
        _ if line.len() > 400 => None,
        Some(command) => prompted_host(line, command).or_else(|| headed_host(line)),
        None => headed_host(line),
    };
    (host, behind.or_else(|| bare_command(line)))
}

/// The command on a line: behind a shell prompt, or alone if memtide reads its output.
pub(crate) fn command(line: &str) -> Option<&str> {
    behind_prompt(line).or_else(|| bare_command(line))
}

/// `$ `, `# `, `> `, `user@host:~$ `, `[root@host ~]# `, `host% `, `➜  ~ `.
fn behind_prompt(line: &str) -> Option<&str> {
    let line = line.trim_start();
    if let Some(rest) = line.strip_prefix(['➜', '❯', 'λ']) {
        return Some(rest.trim());
    }
    let bytes = line.as_bytes();
    let marks = [memchr::memchr3(b'$', b'#', b'%', bytes), memchr::memchr(b'>', bytes)];
    let (before, mark) = line.split_at(marks.into_iter().flatten().min()?);
    let rest = mark.get(1..)?;
    let is_prompt = before.is_empty()
        || before.contains('@')
        || before.starts_with('[')
        || before.ends_with('~')
        || (before.len() < 40 && !before.trim_end().contains(' '));
    let command = rest.strip_prefix(' ')?.trim();
    (is_prompt && command.starts_with(|c: char| c.is_ascii_alphabetic() || "/.".contains(c)))
        .then_some(command)
}

/// The host in the prompt before a command.
fn prompted_host<'l>(line: &'l str, command: &str) -> Option<&'l str> {
    let prompt = line.strip_suffix(command).unwrap_or(line);
    let (user, rest) = prompt.trim_start_matches([' ', '[']).split_once('@')?;
    let host = rest.split(|c| !is_host_char(c)).next()?;
    let is_user = !user.is_empty() && user.chars().all(|c| is_host_char(c) || c == '_');
    (is_user && !host.is_empty()).then_some(host)
}

/// The host in a heading that is one word with a number: `== web2 ==`, `web2:`.
fn headed_host(line: &str) -> Option<&str> {
    // A name and the punctuation around it.
    const HEADING_LEN_MAX: usize = 120;
    const MARKS: &str = "=#-*:><[]";
    let line = line.trim();
    let is_heading =
        line.starts_with(|c| MARKS.contains(c)) || line.ends_with(|c| MARKS.contains(c));
    if !is_heading
        || line.len() > HEADING_LEN_MAX
        || memchr::memchr_iter(b' ', line.as_bytes()).count() > 6
    {
        return None;
    }
    let name = line.trim_matches(|c| c == ' ' || MARKS.contains(c));
    let is_name = name.len() <= 40
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.contains(|c: char| c.is_ascii_digit())
        && name.chars().all(is_host_char);
    // Parts of a host and steps of a test have numbers, too.
    let is_part = || {
        ["node", "cpu", "step", "run", "round", "try", "sample", "test", "day", "t"].iter().any(
            |part| {
                let lower = name.to_ascii_lowercase();
                let rest = lower.strip_prefix(part);
                rest.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit() || b == b'-'))
            },
        )
    };
    (is_name && !is_part()).then_some(name)
}

fn is_host_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '.'
}

/// Programs that are a command when alone on a line.
const PROGRAMS: [&str; 12] = [
    "free", "vmstat", "slabtop", "numastat", "swapon", "sysctl", "sar", "smem", "ps", "top", "cat",
    "sudo",
];

/// A command alone on its line, in a heading or in quotation marks: `vmstat 2 20`, `` Output of `free -m`: ``.
fn bare_command(line: &str) -> Option<&str> {
    // Its first word is lower case, or stands behind a mark or a quotation mark.
    let has_mark = || memchr::memchr2(b'`', b'=', line.as_bytes()).is_some();
    let is_lower =
        || line.trim_start().starts_with(|c: char| c.is_ascii_lowercase() || " *#=:`-".contains(c));
    if line.len() > 120 || !(is_lower() || has_mark()) {
        return None;
    }
    let quoted = || {
        let (_, rest) = line.split_once('`')?;
        rest.split_once(['`', '\'']).map(|(inner, _)| inner)
    };
    let bare = line.trim_matches(|c: char| " *#=:`-".contains(c));
    let is_command = |text: &&str| {
        let mut words = text.split_whitespace();
        let is_program = words.next().is_some_and(|word| PROGRAMS.contains(&word));
        is_program && words.all(|word| PROGRAMS.contains(&word) || is_argument(word))
    };
    [Some(bare), quoted()].into_iter().flatten().find(is_command)
}

fn is_argument(word: &str) -> bool {
    word.starts_with(['-', '/']) || word.parse::<f64>().is_ok()
}

/// The arguments of `program`, up to the next command on the line: of `sudo free -m; uptime` and `free` it is `-m`.
/// `None` if the program was not run.
pub(crate) fn arguments<'a>(command: &'a str, program: &str) -> Option<Vec<&'a str>> {
    command.split([';', '|', '&']).find_map(|part| {
        let mut words = part.split_whitespace();
        words.find(|word| word.rsplit('/').next() == Some(program))?;
        Some(words.collect())
    })
}

/// The value of an option of one letter: `-i 5`, `-i5`.
pub(crate) fn option_value<'a>(arguments: &[&'a str], option: &str) -> Option<&'a str> {
    let mut words = arguments.iter().copied();
    let glued = words.find_map(|word| word.strip_prefix(option))?;
    if glued.is_empty() { words.next() } else { Some(glued) }
}

/// The interval of a loop: `while true; do free -m; sleep 5; done`.
pub(crate) fn loop_interval(command: &str) -> Option<Span> {
    let arguments = arguments(command, "sleep")?;
    interval(arguments.first()?.trim_end_matches('s'))
}

/// The interval of a collector, in whole seconds of at most a day; without one, a second.
pub(crate) fn whole_seconds(argument: Option<&str>) -> Span {
    let seconds = argument.and_then(|word| word.parse().ok());
    Span::from_secs(seconds.unwrap_or(1).clamp(1, 86_400))
}

/// Parses an interval in seconds.
pub(crate) fn interval(word: &str) -> Option<Span> {
    let seconds: f64 = word.replace(',', ".").parse().ok()?;
    (0.001..=86_400.0).contains(&seconds).then(|| Span::from_secs_f64(seconds))
}

/// The time on a line with nothing else, or a word before it: the output of `date`, ISO 8601, seconds since 1970.
pub(crate) fn time(line: &str) -> Option<WallClock> {
    PrintedTime::whole(line)?.wall()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_behind_prompts() {
        for (line, found) in [
            ("$ free -m", Some("free -m")),
            ("# cat /proc/meminfo", Some("cat /proc/meminfo")),
            ("root@db1:~# vmstat 5", Some("vmstat 5")),
            ("[user@host ~]$ sar -B", Some("sar -B")),
            ("➜  ~ free -m", Some("~ free -m")),
            ("Mem: 7 # 3", None),
            ("MemFree: 7 kB", None),
            ("it costs $ 5", None),
        ] {
            assert_eq!(command(line), found, "{line}");
        }
    }

    #[test]
    fn commands_without_a_prompt_are_found() {
        for (line, found) in [
            ("vmstat 2 20", Some("vmstat 2 20")),
            ("=== free -m ===", Some("free -m")),
            ("Output of `free -m`:", Some("free -m")),
            ("sudo slabtop -o", Some("sudo slabtop -o")),
            ("free memory is low", None),
            ("top of the list", None),
            ("ps", Some("ps")),
        ] {
            assert_eq!(command(line), found, "{line}");
        }
    }

    #[test]
    fn hosts_are_found_in_prompts_and_headings() {
        for (line, found) in [
            ("root@web1:~# free -k", Some("web1")),
            ("[user@db-2.lan ~]$ sar -B", Some("db-2.lan")),
            ("me@box % free", Some("box")),
            ("== web2 ==", Some("web2")),
            ("web2:", Some("web2")),
            ("$ ssh root@web1", None),
            ("web2", None),
            ("before:", None),
            ("node0:", None),
            ("Swap: 0 0 0", None),
            ("git@github.com", None),
        ] {
            assert_eq!(host_and_command(line).0, found, "{line}");
        }
    }

    #[test]
    fn arguments_belong_to_the_program() {
        for (command, found) in [
            ("free -m before", Some("-m before")),
            ("sudo /usr/bin/free -h; uptime -p", Some("-h")),
            ("~ free", Some("")),
            ("watch -n 5 free -g", Some("-g")),
            ("cat free.log", None),
        ] {
            let words = arguments(command, "free").map(|words| words.join(" "));
            assert_eq!(words.as_deref(), found, "{command}");
        }
        let looped = "while true; do free -m; sleep 5; done";
        assert_eq!(loop_interval(looped), Some(Span::from_secs(5)));
    }
}
