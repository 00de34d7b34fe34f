//! Options on the command line of `vmstat`: unit of sizes, interval, and whether the heading may be missing.

use units::Span;

use crate::forms::size_unit::SizeUnit;
use crate::text::figure::MIB;
use crate::text::prompt;

/// Options of `vmstat`.
#[derive(Debug)]
pub(super) struct VmstatOptions {
    /// The interval.
    pub(super) every: Option<Span>,
    /// The unit of sizes; `None` if the command line was not pasted.
    pub(super) unit: Option<SizeUnit>,
    /// Whether the command runs `vmstat`.
    pub(super) ran: bool,
    /// Whether it prints active and inactive memory (`-a`).
    pub(super) active: bool,
}

impl VmstatOptions {
    /// The options in a command line.
    pub(super) fn from_command(command: &str) -> Self {
        let arguments = prompt::arguments(command, "vmstat");
        let mut options = Self {
            every: None,
            unit: arguments.is_some().then_some(SizeUnit::KIB),
            ran: arguments.is_some(),
            active: false,
        };
        let mut words = arguments.unwrap_or_default().into_iter();
        while let Some(word) = words.next() {
            if let Some(unit) = word.strip_prefix("--unit") {
                let next = unit.strip_prefix('=').or_else(|| words.next());
                options.set_unit(next.unwrap_or_default());
            } else if let Some(letters) = word.strip_prefix('-').filter(|w| !w.starts_with('-')) {
                options.active |= letters.split('S').next().is_some_and(|l| l.contains('a'));
                if let Some((_, unit)) = letters.split_once('S') {
                    let unit =
                        if unit.is_empty() { words.next().unwrap_or_default() } else { unit };
                    options.set_unit(unit);
                } else if letters.ends_with('p') {
                    words.next();
                }
            } else if let Some(every) = prompt::interval(word) {
                options.every = Some(every);
                break;
            } else {
                options.active |= word == "--active";
            }
        }
        options
    }

    fn set_unit(&mut self, letter: &str) {
        self.unit = letter.chars().next().and_then(unit_of).or(self.unit);
    }
}

/// The unit for a letter of `-S`, which `-s` prints as well.
pub(super) fn unit_of(letter: char) -> Option<SizeUnit> {
    Some(match letter {
        'B' | 'b' => SizeUnit::new("bytes", 1.0),
        'k' => SizeUnit::new("kB of 1000 bytes", 1e3),
        'K' => SizeUnit::KIB,
        'm' => SizeUnit::new("MB of 10^6 bytes", 1e6),
        'M' => SizeUnit::new("MiB", MIB),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_and_interval_are_found_among_all_options() {
        for (command, bytes, every, active) in [
            ("vmstat", 1024.0, None, false),
            ("vmstat 5", 1024.0, Some(5), false),
            ("sudo vmstat -w -t 1 10 | ts", 1024.0, Some(1), false),
            ("vmstat -S m 2", 1e6, Some(2), false),
            ("vmstat -aSM 2", MIB, Some(2), true),
            ("vmstat --unit k -n 3", 1e3, Some(3), false),
            ("vmstat -p sda1 4", 1024.0, Some(4), false),
            ("timeout 60 vmstat 1", 1024.0, Some(1), false),
            ("vmstat before 5 o'clock", 1024.0, Some(5), false),
        ] {
            let options = VmstatOptions::from_command(command);
            assert_eq!(options.unit.map(|unit| unit.bytes), Some(bytes), "{command}");
            assert_eq!(options.every, every.map(Span::from_secs), "{command}");
            assert_eq!(options.active, active, "{command}");
        }
        let saved = VmstatOptions::from_command("cat vmstat.log 7");
        assert_eq!((saved.unit, saved.every), (None, None));
    }
}
