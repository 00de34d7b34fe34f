//! The line above sar's tables: `Linux 5.10.0 (host) 11/21/2026 _x86_64_ (8 CPU)`.

use jiff::civil::Date;

use crate::sar::host::SarHost;
use crate::sar::stamp;

/// The line above the tables.
#[derive(Debug, PartialEq)]
pub(super) struct SarHead<'a> {
    pub(super) host: SarHost,
    /// Release and host name, to distinguish hosts.
    pub(super) identity: &'a str,
    /// The midnight before its tables, in seconds since 1970.
    pub(super) midnight: Option<i64>,
}

impl<'a> SarHead<'a> {
    /// Reads the line; `None` for any other line.
    pub(super) fn read(line: &'a str) -> Option<Self> {
        let line = line.trim_start();
        let rest = line.strip_prefix("Linux ")?;
        let (release, behind) = rest.split_once(" (")?;
        let (_, behind) = behind.split_once(')')?;
        let mut head =
            Self { host: SarHost::default(), identity: line.strip_suffix(behind)?, midnight: None };
        head.host.set_release(release.trim());
        let (dated, cpus) = behind.split_once('(').unwrap_or((behind, ""));
        head.host.cpus = digits(cpus).next();
        let (date, machine) = dated.split_once(" _").unwrap_or((dated, ""));
        let machine = machine.trim().trim_end_matches('_');
        head.host.set_machine(machine);
        head.midnight = self::date(date).and_then(stamp::date_seconds);
        let is_head = head.midnight.is_some() || head.host.cpus.is_some() || !machine.is_empty();
        is_head.then_some(head)
    }
}

fn digits(text: &str) -> impl Iterator<Item = u32> + '_ {
    let parts = text.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok())
}

/// A date in the format of a locale. `03/04/26` is ambiguous: month first, as sar prints it by default; `03.04.26` is
/// day first.
fn date(text: &str) -> Option<Date> {
    let text = text.trim();
    let mut parts = digits(text);
    let (a, b, c) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, month, day) = match (a, b) {
        _ if a >= 1000 => (a, b, c),
        (13.., _) => (c, b, a),
        (_, 13..) => (c, a, b),
        _ if text.contains(['.', '-']) => (c, b, a),
        _ => (c, a, b),
    };
    let year = if year < 100 { year + 2000 } else { year };
    let small = |n: u32| i8::try_from(n).ok();
    Date::new(i16::try_from(year).ok()?, small(month)?, small(day)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_any_locale() {
        let known = Date::new(2026, 11, 21).ok();
        for text in [
            "11/21/2026",
            "11/21/26",
            "21/11/26",
            "21.11.2026",
            "2026-11-21",
            "2026年11月21日",
            "21. 11. 2026",
            "2026. 11. 21.",
        ] {
            assert_eq!(date(text), known, "{text}");
        }
        for text in ["", "11/21", "99/99/2026", "11/21/99999"] {
            assert_eq!(date(text), None, "{text}");
        }
    }

    #[test]
    fn the_line_has_kernel_machine_and_cpus() {
        let head = SarHead::read("Linux 5.10.0-8-amd64 (db(1)) \t11/21/2026 \t_x86_64_\t(8 CPU)");
        assert!(head.is_some());
        let head =
            SarHead::read("Linux 5.10.0-8-amd64 (db)  11/21/2026  _x86_64_  (8 CPU)").unwrap();
        assert_eq!(head.host.release.as_deref(), Some("5.10.0-8-amd64"));
        assert_eq!(head.host.machine.as_deref(), Some("x86_64"));
        assert_eq!((head.host.cpus, head.midnight), (Some(8), Some(1_795_219_200)));
        for line in ["Linux version 5.10 (gcc 12) #1 SMP", "Linux is (mostly) fine", "Linux"] {
            assert_eq!(SarHead::read(line), None, "{line}");
        }
    }
}
