//! What the command line of `vmstat` tells: the unit of its sizes, the interval, whether its heading may be missing.

use units::Span;

use crate::prompt;

/// What was asked of `vmstat`.
#[derive(Debug)]
pub(super) struct Options {
    /// The interval.
    pub(super) every: Option<Span>,
    /// What sizes count; `None` where the command line was not pasted.
    pub(super) unit: Option<Unit>,
    /// Whether `vmstat` was run at all.
    pub(super) ran: bool,
    /// Whether it was to print active and inactive memory.
    pub(super) active: bool,
}

/// What sizes count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unit {
    /// Its name, for people.
    pub(super) name: &'static str,
    /// Its size.
    pub(super) bytes: f64,
}

impl Options {
    /// Those of a command line.
    pub(super) fn of(command: &str) -> Self {
        let arguments = prompt::arguments(command, "vmstat");
        let mut options = Self {
            every: None,
            unit: arguments.is_some().then_some(Unit::KIB),
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
                    let unit = if unit.is_empty() {
                        words.next().unwrap_or_default()
                    } else {
                        unit
                    };
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
        self.unit = letter.chars().next().and_then(Unit::of).or(self.unit);
    }
}

impl Unit {
    /// The unit that vmstat prints in unless told otherwise.
    pub(super) const KIB: Self = Self {
        name: "KiB",
        bytes: 1024.0,
    };

    /// By the letter of `-S`, which `-s` prints.
    pub(super) fn of(letter: char) -> Option<Self> {
        let of = |name, bytes| Some(Self { name, bytes });
        match letter {
            'B' | 'b' => of("bytes", 1.0),
            'k' => of("kB of 1000 bytes", 1e3),
            'K' => Some(Self::KIB),
            'm' => of("MB of 10^6 bytes", 1e6),
            'M' => of("MiB", 1_048_576.0),
            _ => None,
        }
    }
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
            ("vmstat -aSM 2", 1_048_576.0, Some(2), true),
            ("vmstat --unit k -n 3", 1e3, Some(3), false),
            ("vmstat -p sda1 4", 1024.0, Some(4), false),
            ("timeout 60 vmstat 1", 1024.0, Some(1), false),
            ("vmstat before 5 o'clock", 1024.0, Some(5), false),
        ] {
            let options = Options::of(command);
            assert_eq!(
                options.unit.map(|unit| unit.bytes),
                Some(bytes),
                "{command}"
            );
            assert_eq!(options.every, every.map(Span::from_secs), "{command}");
            assert_eq!(options.active, active, "{command}");
        }
        let saved = Options::of("cat vmstat.log 7");
        assert_eq!((saved.unit, saved.every), (None, None));
    }
}
