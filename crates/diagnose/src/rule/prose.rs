//! What a rule says in words: its documentation, its cause, and what verifies a fix. A threshold stands in them by the
//! name of its constant, `{STALL}`, so that the words print what the trigger compares with.

/// A constant as `declare_rule!` lists it under `numbers`: its name, and how it is printed.
pub(crate) type ProseConstant = (&'static str, fn() -> String);

/// Returns the text with each `{NAME}` replaced by what the constant prints.
pub(super) fn filled(text: &str, constants: &[ProseConstant]) -> String {
    let fill = |text: String, (name, print): &ProseConstant| {
        text.replace(&format!("{{{name}}}"), &print())
    };
    constants.iter().fold(text.to_owned(), fill)
}

#[cfg(test)]
mod tests {
    use crate::rule::Rule;
    use crate::rules;

    /// What makes the number before it a quantity; `or more` and `or less` make a threshold of a plain number.
    const UNITS: [&str; 27] = [
        "%", "ms", "s", "min", "h", "d", "seconds", "minutes", "hours", "days", "B", "KiB", "MiB",
        "GiB", "kB", "KiB/s", "MiB/s", "GiB/s", "pages", "pages/s", "times", "readings", "per",
        "of", "or more", "or less", "at most",
    ];

    /// Parts in words: `a quarter of RAM` is a number as well. Half of something is mostly no threshold.
    const PARTS: [&str; 6] = ["third", "quarter", "fifth", "tenth", "twentieth", "hundredth"];

    /// Numbers that are no thresholds, each in the rule that has it.
    const FACTS: [(&str, &str); 8] = [
        // Measured with and without the advice.
        (
            "cgroup-dirty-reclaim",
            "a writer in 64 MiB, memory stalls fell from 18 % to 6 %, and 11 % more was written; in \
             40 MiB on a disk of 10 MiB/s they fell from 73 % to 44 %",
        ),
        ("cgroup-dirty-reclaim", "A limit of a quarter more"),
        // Measured on a host whose program text was evicted.
        ("exec-pages-evicted", "10 to 26 faults per second brought in 14,000 pages"),
        // What the kernel computes (mm/page_alloc.c, mm/khugepaged.c), and a size of pages.
        ("min-free-too-large", "22 MiB for each zone with huge pages on"),
        ("min-free-too-large", "arm64 with 64 KiB pages"),
        // An order of an allocation, which a request by hand has not.
        ("oom-manual", "the order is 0 or more"),
        // Measured on healthy hosts.
        ("slab-leak", "healthy hosts have 0.3 % to 6 %"),
        ("unaccounted-memory", "1 % to 4 % unexplained"),
    ];

    /// Sections in which a number is no threshold: what the kernel and the hardware do, and sources.
    const OF_FACTS: [&str; 2] = ["What it means", "References"];

    /// The words of a rule that speak of its thresholds, in one line.
    fn prose(rule: &Rule) -> String {
        let sections = rule.prose.split("## ");
        let judged = sections.filter(|text| !OF_FACTS.iter().any(|name| text.starts_with(name)));
        let parts: Vec<&str> = judged.chain([rule.cause, rule.verify]).collect();
        parts.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The numbers with a unit in a text, code left out.
    fn bare_numbers(text: &str) -> Vec<String> {
        let words = text.split('`').step_by(2).flat_map(str::split_whitespace);
        let words: Vec<&str> = words.collect();
        let is_number = |word: &str| {
            word.ends_with(|c: char| c.is_ascii_digit())
                && word.chars().all(|c| c.is_ascii_digit() || "(,.-−".contains(c))
        };
        let parts = words.windows(3).filter(|three| PARTS.contains(&three[1]) && three[2] == "of");
        let mut found: Vec<String> = parts.map(|three| three.join(" ")).collect();
        for (at, number) in words.iter().enumerate().filter(|(_, word)| is_number(word)) {
            let next: Vec<&str> = words.iter().skip(at + 1).take(2).copied().collect();
            let next = next.join(" ");
            let follows = |unit: &str| {
                let rest = next.strip_prefix(unit);
                rest.is_some_and(|rest| {
                    !rest.starts_with(|c: char| c.is_alphanumeric() || c == '/')
                })
            };
            if let Some(unit) = UNITS.into_iter().find(|unit| follows(unit)) {
                found.push(format!("{number} {unit}"));
            }
        }
        found
    }

    /// Thresholds with three digits that count, each with its rule and the reason.
    const ODD: [(&str, &str, &str); 4] = [
        // 10 MiB/s in pages of 4 KiB, the unit that the kernel counts in.
        ("tier-thrash", "MOVED", "2,560 pages/s"),
        // Shares above the whole: the two digits count from 100 %.
        ("min-free-too-large", "BEYOND_DEFAULT", "1.15"),
        ("cgroup-high-throttle", "ABOVE", "102 %"),
        ("free-low-harmless", "Floor::NEAR", "115 %"),
    ];

    /// Whether a printed number can be remembered: two digits that count at most, or a power of two.
    fn is_round(printed: &str) -> bool {
        let digits: String = printed.chars().filter(char::is_ascii_digit).collect();
        let is_power = || {
            let number: Option<u64> = printed.split(' ').next().and_then(|it| it.parse().ok());
            number.is_some_and(u64::is_power_of_two)
        };
        digits.trim_matches('0').len() <= 2 || is_power()
    }

    #[test]
    fn a_round_number_has_two_digits_that_count_or_is_a_power_of_two() {
        for round in
            ["1 %", "100 KiB/s", "0.25", "1.5 GiB", "12,000 pages/s", "4 s", "0", "256 MiB"]
        {
            assert!(is_round(round), "{round}");
        }
        for odd in ["102 KiB/s", "1.25 GiB", "12,500", "0.105 %", "257 MiB", "2.56 s"] {
            assert!(!is_round(odd), "{odd}");
        }
    }

    #[test]
    fn thresholds_print_as_round_numbers() {
        let all = rules::ALL
            .iter()
            .flat_map(|rule| rule.numbers.iter().map(|(name, print)| (rule.id, *name, print())));
        let odd: Vec<_> = all.filter(|(_, _, printed)| !is_round(printed)).collect();
        let odd: Vec<_> = odd.iter().map(|(id, name, printed)| (*id, *name, &**printed)).collect();
        assert_eq!(odd, ODD);
    }

    #[test]
    fn a_number_with_a_unit_is_found_outside_of_code() {
        let text = "for 4 s or longer, (5 % of RAM), `sleep 5 s`, kernels 5.9 or later, {STALL}, \
                    vm.swappiness is 10 or less, a quarter of RAM, another quarter";
        assert_eq!(bare_numbers(text), ["a quarter of", "4 s", "(5 %", "10 or less"]);
    }

    #[test]
    fn a_threshold_stands_in_the_words_of_a_rule_by_its_name() {
        for rule in rules::ALL {
            let facts = FACTS.iter().filter(|(id, _)| *id == rule.id);
            let text = facts.fold(prose(rule), |text, (id, fact)| {
                assert!(text.contains(fact), "{id} does not say: {fact}");
                text.replace(fact, "")
            });
            let bare = bare_numbers(&text);
            assert!(bare.is_empty(), "{}: {bare:?} stand there as numbers", rule.id);
        }
    }

    #[test]
    fn the_words_of_a_rule_name_the_constants_that_it_lists_and_no_others() {
        for rule in rules::ALL {
            let written = [rule.prose, rule.cause, rule.verify].join("\n");
            for (name, _) in rule.numbers {
                let named = written.contains(&format!("{{{name}}}"));
                assert!(named, "{}: {name} is listed and not named", rule.id);
            }
            let printed = rule.filled(&written);
            assert!(!printed.contains(['{', '}']), "{}: {printed}", rule.id);
            assert!(rule.references().all(|source| !source.contains('{')), "{}", rule.id);
        }
    }
}
