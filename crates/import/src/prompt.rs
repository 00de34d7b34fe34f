//! What stands around pasted blocks and tells something of them: the command behind a shell prompt, the time.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use units::WallClock;

/// The command that was typed on this line, if it is a shell prompt with one.
pub(crate) fn command(line: &str) -> Option<&str> {
    let line = line.trim_start();
    // `$ `, `# `, `> `, `user@host:~$ `, `[root@host ~]# `, `host% `.
    let end = line.find(['$', '#', '%', '>'])?;
    let (before, rest) = line.split_at(end);
    let is_prompt = before.is_empty()
        || before.contains('@')
        || before.starts_with('[')
        || before.ends_with('~')
        || (before.len() < 40 && !before.trim_end().contains(' '));
    let command = rest[1..].strip_prefix(' ')?.trim();
    (is_prompt && command.starts_with(|c: char| c.is_ascii_alphabetic() || "/.".contains(c)))
        .then_some(command)
}

/// The time that this line is, if it is nothing but a time (with a word or two around it at most): the output of `date`,
/// ISO 8601, seconds since 1970.
pub(crate) fn time(line: &str) -> Option<WallClock> {
    let line = line.trim().trim_matches(['=', '-', '#', '[', ']', ' ']);
    if line.len() < 8 || line.len() > 60 || !line.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let nanos = |t: Timestamp| i64::try_from(t.as_nanosecond()).ok();
    let zoned = line.parse::<Timestamp>().ok().and_then(nanos);
    let civil = || {
        let time = line.parse::<DateTime>().ok()?;
        nanos(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    };
    let date = || {
        // `Sat Nov 21 23:58:47 UTC 2026`: the zone's name is left out, differences stay right.
        let words: Vec<&str> = line.split_whitespace().collect();
        let without_zone = match words.as_slice() {
            [day, month, number, time, _zone, year] => {
                format!("{day} {month} {number} {time} {year}")
            }
            [day, month, number, time, half @ ("AM" | "PM"), _zone, year] => {
                let text = format!("{day} {month} {number} {time} {half} {year}");
                let time = strtime::parse("%a %b %d %I:%M:%S %p %Y", text).ok()?;
                return nanos(
                    time.to_datetime()
                        .ok()?
                        .to_zoned(jiff::tz::TimeZone::UTC)
                        .ok()?
                        .timestamp(),
                );
            }
            _ => line.to_owned(),
        };
        let time = strtime::parse("%a %b %d %H:%M:%S %Y", without_zone).ok()?;
        nanos(
            time.to_datetime()
                .ok()?
                .to_zoned(jiff::tz::TimeZone::UTC)
                .ok()?
                .timestamp(),
        )
    };
    let epoch = || {
        let seconds: i64 = line.parse().ok()?;
        (1_000_000_000..4_000_000_000)
            .contains(&seconds)
            .then_some(seconds * 1_000_000_000)
    };
    zoned
        .or_else(civil)
        .or_else(date)
        .or_else(epoch)
        .map(WallClock::from_unix_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stand_behind_prompts() {
        for (line, found) in [
            ("$ free -m", Some("free -m")),
            ("# cat /proc/meminfo", Some("cat /proc/meminfo")),
            ("root@db1:~# vmstat 5", Some("vmstat 5")),
            ("[user@host ~]$ sar -B", Some("sar -B")),
            ("Mem: 7 # 3", None),
            ("MemFree: 7 kB", None),
            ("it costs $ 5", None),
        ] {
            assert_eq!(command(line), found, "{line}");
        }
    }

    #[test]
    fn times_are_read_as_people_leave_them() {
        let at = |line: &str| time(line).map(|t| t.unix_nanos() / 1_000_000_000);
        let known = Some(1_795_305_527);
        for line in [
            "Sat Nov 21 23:58:47 UTC 2026",
            "2026-11-21T23:58:47Z",
            "2026-11-21 23:58:47",
            "=== 2026-11-21 23:58:47 ===",
            "1795305527",
        ] {
            assert_eq!(at(line), known, "{line}");
        }
        for line in ["free -m", "Mem: 7", "12345678", ""] {
            assert_eq!(at(line), None, "{line}");
        }
    }
}
