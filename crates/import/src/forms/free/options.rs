//! Options on the command line of `free`: the unit of its sizes and the interval.

use units::Span;

use crate::forms::size_unit::SizeUnit;
use crate::text::figure::{Base, GIB, KIB, MIB, PrintedFigure, TIB};
use crate::text::prompt;

/// Options of `free`.
#[derive(Debug)]
pub(super) struct FreeOptions {
    /// The interval of `-s`, or of the loop around it.
    pub(super) every: Option<Span>,
    /// The base of suffixes.
    pub(super) base: Base,
    unit: Option<SizeUnit>,
}

/// Letter, long option, unit, and the unit with `--si`.
#[rustfmt::skip]
const UNITS: [(char, &str, SizeUnit, Option<SizeUnit>); 13] = [
    ('h', "--human", SizeUnit::new(AS_PRINTED, GIB), Some(SizeUnit::new(AS_PRINTED, 1e9))),
    ('b', "--bytes", SizeUnit::new("bytes", 1.0), None),
    (' ', "--kilo", KILO, None),
    (' ', "--mega", MEGA, None),
    (' ', "--giga", GIGA, None),
    (' ', "--tera", SizeUnit::new("TB of 10^12 bytes", 1e12), None),
    (' ', "--peta", SizeUnit::new("PB of 10^15 bytes", 1e15), None),
    ('k', "--kibi", SizeUnit::KIB, Some(KILO)),
    ('m', "--mebi", SizeUnit::new("MiB", MIB), Some(MEGA)),
    ('g', "--gibi", SizeUnit::new("GiB", GIB), Some(GIGA)),
    (' ', "--tebi", SizeUnit::new("TiB", TIB), None),
    (' ', "--pebi", SizeUnit::new("PiB", KIB * TIB), None),
    ('K', "--kb", SizeUnit::KIB, Some(KILO)),
];
const KILO: SizeUnit = SizeUnit::new("kB of 1000 bytes", 1e3);
const MEGA: SizeUnit = SizeUnit::new("MB of 10^6 bytes", 1e6);
const GIGA: SizeUnit = SizeUnit::new("GB of 10^9 bytes", 1e9);
/// Each figure has its suffix.
const AS_PRINTED: &str = "as printed";

impl FreeOptions {
    /// The options in a command line, if it runs `free`.
    pub(super) fn from_command(command: &str) -> Self {
        let arguments = prompt::arguments(command, "free");
        let ran = arguments.is_some();
        let arguments = arguments.unwrap_or_default();
        let si = arguments.contains(&"--si");
        let option = UNITS.iter().find(|(letter, long, ..)| {
            arguments.iter().any(|word| word == long || letters(word).contains(*letter))
        });
        let unit = match option {
            Some((.., unit, with_si)) => Some(with_si.filter(|_| si).unwrap_or(*unit)),
            // A long option that is not known may change the unit.
            None if ran && !has_other_long_option(&arguments) => {
                Some(if si { KILO } else { SizeUnit::KIB })
            }
            None => None,
        };
        Self {
            every: every(&arguments).or_else(|| prompt::loop_interval(command)),
            base: if si { Base::Decimal } else { Base::Binary },
            unit,
        }
    }

    /// The unit of the option if the largest figure can be in it (a title may omit the option), else a guess.
    pub(super) fn unit(&self, figures: &[PrintedFigure]) -> SizeUnit {
        let largest = figures.iter().map(|f| f.value).fold(0.0, f64::max);
        // No host has less than 30 MB of RAM.
        let is_too_small =
            |unit: SizeUnit| unit.bytes <= KIB && unit.bytes > 1.0 && largest < 30_000.0;
        self.unit.filter(|unit| !is_too_small(*unit)).unwrap_or_else(|| guess(figures, largest))
    }
}

fn has_other_long_option(arguments: &[&str]) -> bool {
    arguments.iter().any(|word| word.starts_with("--") && *word != "--si")
}

/// The letters of a group of short options: `-mt`.
fn letters(word: &str) -> &str {
    match word.strip_prefix('-') {
        Some(group) if !group.starts_with('-') => group,
        _ => "",
    }
}

/// The interval of `-s 5`, `-s5`, `--seconds=5`.
fn every(arguments: &[&str]) -> Option<Span> {
    let at = arguments
        .iter()
        .position(|word| letters(word).contains('s') || word.starts_with("--seconds"))?;
    let inline = arguments[at].trim_start_matches(|c: char| !c.is_ascii_digit());
    prompt::interval(if inline.is_empty() { arguments.get(at + 1)? } else { inline })
}

/// Guesses the unit by the size of RAM: no host has 78 MiB or 100 TiB.
fn guess(figures: &[PrintedFigure], largest: f64) -> SizeUnit {
    if figures.iter().any(|f| f.has_unit) {
        SizeUnit::new(AS_PRINTED, GIB)
    } else if largest < 256.0 {
        SizeUnit::new("GiB, by the size", GIB)
    } else if largest < 200_000.0 {
        SizeUnit::new("MiB, by the size", MIB)
    } else if largest > 1e8 && figures.iter().all(|f| f.value % KIB == 0.0) {
        SizeUnit::new("bytes, by the size", 1.0)
    } else {
        SizeUnit::KIB
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(command: &str, total: f64) -> f64 {
        FreeOptions::from_command(command).unit(&[PrintedFigure::whole(total)]).bytes
    }

    #[test]
    fn every_option_has_its_unit() {
        for (command, bytes) in [
            ("free", KIB),
            ("free -k", KIB),
            ("free -b", 1.0),
            ("free -mt", MIB),
            ("sudo free --mebi -w", MIB),
            ("free --mega", 1e6),
            ("free -m --si", 1e6),
            ("free --si", 1e3),
            ("free --kilo before", 1e3),
            ("free -gl -s 5", GIB),
            ("free --tebi", TIB),
            ("/usr/bin/free -h | head -2", GIB),
            ("ps aux -m; free -g", GIB),
        ] {
            let found = unit(command, 40_000.0);
            assert!((found - bytes).abs() < 0.5, "{command}: {found}");
        }
    }

    #[test]
    fn without_the_command_the_size_decides() {
        for (command, total, bytes) in [
            ("", 80_429.0, MIB),
            ("cat free-m.log", 15.0, GIB),
            ("", 32_359_008.0, KIB),
            ("", 33_135_624_192.0, 1.0),
            ("free", 7_746.0, MIB),
        ] {
            assert!((unit(command, total) - bytes).abs() < 0.5, "{command} {total}");
        }
    }

    #[test]
    fn the_interval_is_that_of_the_option_or_of_the_loop() {
        for (command, seconds) in [
            ("free -m -s 5", Some(5)),
            ("free -ms5 -c 3", Some(5)),
            ("free --seconds=2", Some(2)),
            ("while :; do free; sleep 10; done", Some(10)),
            ("free --si", None),
            ("free -m before", None),
            ("free -s -1", None),
        ] {
            assert_eq!(
                FreeOptions::from_command(command).every,
                seconds.map(Span::from_secs),
                "{command}"
            );
        }
    }
}
