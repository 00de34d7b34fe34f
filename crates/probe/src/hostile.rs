//! Hostile input for parser tests: any bytes, cut and damaged kernel texts, absurd numbers.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Words that kernel files are made of, and numbers that they should not hold.
const WORDS: &[&str] = &[
    "Node",
    "0,",
    "zone",
    "Normal",
    "pages",
    "free",
    "pagesets",
    "count:",
    "protection:",
    "(0,",
    "1)",
    "managed",
    "cpu",
    "cpu0",
    "intr",
    "processes",
    "sda",
    "sda1",
    "TCP:",
    "mem",
    ":",
    "tunables",
    "slabdata",
    "kB",
    "MemTotal:",
    "numa_hit",
    "pgalloc_dma",
    "\n",
    "\n",
    "\n",
    " ",
    "\t",
    "",
    "0",
    "1",
    "12",
    "-1",
    "+1",
    "1.5",
    "18446744073709551615",
    "18446744073709551616",
    "1180591620717411303424",
    "9223372036854775807",
    "0x10",
    "\\040",
    "\\777",
    "\\",
    "\0",
    "é",
    "\u{202e}",
];

/// Feeds a parser with hostile texts, some of them made from `real`. It must return from each.
pub(crate) fn feed(real: &[u8], mut parse: impl FnMut(&[u8])) {
    for end in 0..real.len().min(2_000) {
        parse(&real[..end]);
    }
    for cut in (0..real.len()).step_by(97) {
        parse(&real[cut..]);
    }
    let any_bytes = prop::collection::vec(any::<u8>(), 0..300);
    let word_soup = prop::collection::vec(prop::sample::select(WORDS), 0..80)
        .prop_map(|words| words.join(" ").into_bytes());
    let real = real.to_vec();
    let damaged = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)
        .prop_map(move |hits| {
            let mut text = real.clone();
            for (place, byte) in hits {
                if !text.is_empty() {
                    let place = place.index(text.len());
                    text[place] = byte;
                }
            }
            text
        });
    let texts = prop_oneof![any_bytes, word_soup, damaged];
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    let parse = std::cell::RefCell::new(&mut parse);
    let survived = TestRunner::new(config).run(&texts, |text| {
        (parse.borrow_mut())(&text);
        Ok(())
    });
    assert_eq!(survived.map_err(|failure| failure.to_string()), Ok(()));
}
