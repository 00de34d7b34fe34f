//! What the command line of `free` tells: the unit of its sizes and the interval.

use units::Span;

use crate::figure::{Base, Figure};
use crate::prompt;

/// What was asked of `free`.
#[derive(Debug)]
pub(super) struct Options {
    /// The interval of `-s`, or of the loop around it.
    pub(super) every: Option<Span>,
    /// What suffixes mean.
    pub(super) base: Base,
    unit: Option<Unit>,
}

/// What a figure without suffix counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    /// Its name, for people.
    pub(super) name: &'static str,
    /// Its size.
    pub(super) bytes: f64,
}

const KIB: f64 = 1024.0;

/// Letter, name of the option, unit; and the unit with `--si`.
#[rustfmt::skip]
const UNITS: [(char, &str, Unit, Option<Unit>); 13] = [
    ('h', "--human", Unit::of("as printed", KIB * KIB * KIB), Some(Unit::of("as printed", 1e9))),
    ('b', "--bytes", Unit::of("bytes", 1.0), None),
    (' ', "--kilo", KILO, None),
    (' ', "--mega", MEGA, None),
    (' ', "--giga", GIGA, None),
    (' ', "--tera", Unit::of("TB of 10^12 bytes", 1e12), None),
    (' ', "--peta", Unit::of("PB of 10^15 bytes", 1e15), None),
    ('k', "--kibi", Unit::KIB, Some(KILO)),
    ('m', "--mebi", Unit::of("MiB", KIB * KIB), Some(MEGA)),
    ('g', "--gibi", Unit::of("GiB", KIB * KIB * KIB), Some(GIGA)),
    (' ', "--tebi", Unit::of("TiB", KIB * KIB * KIB * KIB), None),
    (' ', "--pebi", Unit::of("PiB", KIB * KIB * KIB * KIB * KIB), None),
    ('K', "--kb", Unit::KIB, Some(KILO)),
];
const KILO: Unit = Unit::of("kB of 1000 bytes", 1e3);
const MEGA: Unit = Unit::of("MB of 10^6 bytes", 1e6);
const GIGA: Unit = Unit::of("GB of 10^9 bytes", 1e9);

impl Unit {
    /// The unit that free prints in unless told otherwise.
    pub(super) const KIB: Self = Self::of("KiB", KIB);

    const fn of(name: &'static str, bytes: f64) -> Self {
        Self { name, bytes }
    }
}

impl Options {
    /// Those of a command line, if it runs `free`.
    pub(super) fn of(command: &str) -> Self {
        let arguments = prompt::arguments(command, "free");
        let ran = arguments.is_some();
        let arguments = arguments.unwrap_or_default();
        let si = arguments.contains(&"--si");
        let asked = |(letter, long, unit, of_si): &(char, &str, Unit, Option<Unit>)| {
            let is_it = |word: &&str| *word == *long || letters(word).contains(*letter);
            let found = arguments.iter().any(is_it);
            found.then(|| of_si.filter(|_| si).unwrap_or(*unit))
        };
        // Without an option it is KiB, and kB with `--si`; without the command nothing is known.
        let default = if si { KILO } else { Unit::KIB };
        let is_bare = ran
            && arguments
                .iter()
                .all(|word| !word.starts_with("--") || *word == "--si");
        Self {
            every: every(&arguments).or_else(|| prompt::loop_interval(command)),
            base: if si { Base::Decimal } else { Base::Binary },
            unit: UNITS.iter().find_map(asked).or(is_bare.then_some(default)),
        }
    }

    /// The unit that was asked for, if the first and largest figure can be that: a title may leave the option out.
    pub(super) fn unit(&self, figures: &[Figure]) -> Unit {
        let largest = figures.iter().map(|f| f.value).fold(0.0, f64::max);
        let guess = || guessed(figures, largest);
        match self.unit {
            // Nobody has 200 MB of RAM and prints it in KiB without an option.
            Some(unit) if unit.bytes <= KIB && unit.bytes > 1.0 && largest < 30_000.0 => guess(),
            Some(unit) => unit,
            None => guess(),
        }
    }
}

/// The letters of a group of short options: `-mt`. What follows on `-s` and `-c` is a number.
fn letters(word: &str) -> &str {
    match word.strip_prefix('-') {
        Some(group) if !group.starts_with('-') => group,
        _ => "",
    }
}

/// The interval of `-s 5`, `-s5`, `--seconds=5`.
fn every(arguments: &[&str]) -> Option<Span> {
    let is_it = |word: &&str| letters(word).contains('s') || word.starts_with("--seconds");
    let at = arguments.iter().position(is_it)?;
    let inline = arguments[at].trim_start_matches(|c: char| !c.is_ascii_digit());
    let text = match inline.is_empty() {
        true => arguments.get(at + 1)?,
        false => inline,
    };
    prompt::interval(text)
}

/// Without the command, the size of RAM tells: nobody has 78 MiB, nor 100 TiB.
fn guessed(figures: &[Figure], largest: f64) -> Unit {
    if figures.iter().any(|f| f.has_unit) {
        Unit::of("as printed", KIB * KIB * KIB)
    } else if largest < 256.0 {
        Unit::of("GiB, by the size", KIB * KIB * KIB)
    } else if largest < 200_000.0 {
        Unit::of("MiB, by the size", KIB * KIB)
    } else if largest > 1e8 && figures.iter().all(|f| f.value % KIB == 0.0) {
        Unit::of("bytes, by the size", 1.0)
    } else {
        Unit::KIB
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(command: &str, total: f64) -> f64 {
        let figure = Figure {
            value: total,
            error: 1.0,
            has_unit: false,
        };
        Options::of(command).unit(&[figure]).bytes
    }

    #[test]
    fn every_option_has_its_unit() {
        let of = |command| unit(command, 40_000.0);
        for (command, bytes) in [
            ("free", KIB),
            ("free -k", KIB),
            ("free -b", 1.0),
            ("free -mt", KIB * KIB),
            ("sudo free --mebi -w", KIB * KIB),
            ("free --mega", 1e6),
            ("free -m --si", 1e6),
            ("free --si", 1e3),
            ("free --kilo before", 1e3),
            ("free -gl -s 5", KIB * KIB * KIB),
            ("free --tebi", KIB * KIB * KIB * KIB),
            ("/usr/bin/free -h | head -2", KIB * KIB * KIB),
            ("ps aux -m; free -g", KIB * KIB * KIB),
        ] {
            assert!(
                (of(command) - bytes).abs() < 0.5,
                "{command}: {}",
                of(command)
            );
        }
    }

    #[test]
    fn without_the_command_the_size_tells() {
        for (command, total, bytes) in [
            ("", 80_429.0, KIB * KIB),
            ("cat free-m.log", 15.0, KIB * KIB * KIB),
            ("", 32_359_008.0, KIB),
            ("", 33_135_624_192.0, 1.0),
            ("free", 7_746.0, KIB * KIB),
        ] {
            assert!(
                (unit(command, total) - bytes).abs() < 0.5,
                "{command} {total}"
            );
        }
    }

    #[test]
    fn intervals_are_those_of_the_option_or_of_the_loop() {
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
                Options::of(command).every,
                seconds.map(Span::from_secs),
                "{command}"
            );
        }
    }
}
