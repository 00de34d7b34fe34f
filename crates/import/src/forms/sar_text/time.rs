//! Times as sar prints them: at the start of each line, in the format of the locale, without a date.

const DAY: i64 = 86_400;

/// The time of day at the start of a line, in seconds, and the rest of the line.
pub(super) fn split(line: &str) -> Option<(i64, &str)> {
    let line = line.trim_start();
    let (before, rest) = half(line).map_or((None, line), |(half, rest)| (Some(half), rest));
    let (hours, rest) = number(rest.trim_start(), 1)?;
    let (first, rest) = separator(rest)?;
    let (minutes, rest) = number(rest, 2)?;
    let (second, rest) = separator(rest)?;
    let (seconds, rest) = number(rest, 2)?;
    if first.is_ascii() && first != second {
        return None;
    }
    let rest = rest.trim_start_matches(['秒', '초']);
    let (after, rest) = match half(rest.trim_start()) {
        Some((half, rest)) => (Some(half), rest),
        None => (None, rest),
    };
    if !(rest.is_empty() || rest.starts_with(' ')) {
        return None;
    }
    let hours = match before.or(after) {
        Some(half) => (1..=12).contains(&hours).then_some(hours % 12 + half)?,
        None => hours,
    };
    let in_range = hours < 24 && minutes < 60 && seconds < 61;
    in_range.then_some((hours * 3600 + minutes * 60 + seconds, rest.trim_start()))
}

/// A number of at least `least` and at most two digits.
fn number(text: &str, least: usize) -> Option<(i64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    if !(least..=2).contains(&digits) {
        return None;
    }
    Some((number.parse().ok()?, rest))
}

/// The separator of hours, minutes and seconds.
fn separator(text: &str) -> Option<(char, &str)> {
    let mut chars = text.chars();
    let mark = chars.next()?;
    let rest = chars.as_str();
    match mark {
        ':' | '.' => Some((mark, rest)),
        '時' | '时' | '시' | '点' | '點' | '分' | '분' => Some((mark, rest.trim_start())),
        _ => None,
    }
}

/// Words for the first half of the day.
const BEFORE_NOON: &[&str] = &[
    "AM",
    "am",
    "a.m.",
    "a. m.",
    "A.M.",
    "vorm.",
    "上午",
    "午前",
    "오전",
    "πμ",
    "π.μ.",
    "ΠΜ",
    "पूर्वाह्न",
    "ص",
];
/// Words for the second half of the day.
const AFTER_NOON: &[&str] = &[
    "PM",
    "pm",
    "p.m.",
    "p. m.",
    "P.M.",
    "nachm.",
    "下午",
    "午後",
    "오후",
    "μμ",
    "μ.μ.",
    "ΜΜ",
    "अपराह्न",
    "م",
];

/// The hours to add for the half of the day named at the start of a text.
fn half(text: &str) -> Option<(i64, &str)> {
    let found = |words: &[&str]| {
        let rest = words.iter().find_map(|word| text.strip_prefix(word))?;
        let ends = !rest.starts_with(|c: char| c.is_ascii_alphabetic());
        ends.then_some(rest)
    };
    found(BEFORE_NOON).map(|rest| (0, rest)).or_else(|| found(AFTER_NOON).map(|rest| (12, rest)))
}

/// Counts the days of a table with times of day.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TableDays {
    offset: i64,
    last: Option<i64>,
}

impl TableDays {
    /// The longest step over midnight; a longer one means that the times are of another table.
    const STEP_MAX: i64 = DAY / 2;

    /// Seconds from the midnight before the table to its next line. `None` if time went back.
    pub(super) fn advance(&mut self, time: i64) -> Option<i64> {
        let mut now = self.offset + time;
        if let Some(last) = self.last
            && now < last
        {
            let back = last - now;
            self.offset += match back {
                // Summer time ended.
                1_800..=3_600 => 3_600,
                _ if DAY - back <= Self::STEP_MAX => DAY,
                _ => return None,
            };
            now = self.offset + time;
        }
        self.last = Some(now);
        Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_any_locale() {
        for (line, time) in [
            ("12:10:05 AM  207.55", 605),
            ("12:10:05AM 207.55", 605),
            ("01:10:05 PM  207.55", 13 * 3600 + 605),
            ("12:10:05 PM", 12 * 3600 + 605),
            ("23:59:59  1.0", 86_399),
            ("00.10.05  1,0", 605),
            ("上午12時10分05秒 1.0", 605),
            ("下午 01:10:05 1.0", 13 * 3600 + 605),
            ("0시 10분 05초 1.0", 605),
            ("12:10:05 a. m. 1.0", 605),
        ] {
            let found = split(line);
            assert_eq!(found.map(|(t, _)| t), Some(time), "{line}");
        }
        for line in [
            "207.55 1.0",
            "13:00:00 AM 1",
            "24:00:00 1",
            "1:2:3",
            "12:10 1",
            "12:10:05x 1",
            "12:10.05 1",
            "",
            "AM",
            "é",
        ] {
            assert_eq!(split(line), None, "{line}");
        }
    }

    #[test]
    fn a_name_after_the_time_is_not_am_or_pm() {
        assert_eq!(split("10:00:01 all 1.0").map(|(_, r)| r), Some("all 1.0"));
        assert_eq!(split("10:00:01 amdisk 1").map(|(_, r)| r), Some("amdisk 1"));
    }

    #[test]
    fn time_continues_over_midnight_and_the_end_of_summer_time() {
        let advance = |times: &[i64]| {
            let mut days = TableDays::default();
            times.iter().map(|t| days.advance(*t)).collect::<Vec<_>>()
        };
        assert_eq!(advance(&[85_800, 0, 600]), [Some(85_800), Some(86_400), Some(87_000)]);
        assert_eq!(advance(&[10_200, 7_200]), [Some(10_200), Some(10_800)]);
        assert_eq!(advance(&[50_000, 40_000]), [Some(50_000), None]);
    }
}
