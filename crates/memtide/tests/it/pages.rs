//! README.md and its kin are true: what they show is what memtide prints, and their links lead somewhere.

use std::process::Command;

use crate::support::root;

/// The blocks that begin with `$ memtide`: what was typed, and where the block stands in the text.
fn console_blocks(page: &str) -> Vec<(std::ops::Range<usize>, String)> {
    const OPEN: &str = "```console\n$ memtide ";
    let mut blocks = Vec::new();
    let mut from = 0;
    while let Some(start) = page[from..].find(OPEN).map(|i| from + i) {
        let end = start + page[start + 3..].find("```").unwrap() + 3;
        let typed = page[start + OPEN.len()..end].lines().next().unwrap();
        blocks.push((start..end, typed.to_owned()));
        from = end;
    }
    blocks
}

/// What was typed prints this; `| head -20` is the only filter that a page may use.
fn printed(typed: &str) -> String {
    let (arguments, lines) = match typed.split_once(" | head -") {
        Some((arguments, lines)) => (arguments, lines.parse().unwrap()),
        None => (typed, usize::MAX),
    };
    let output = Command::new(env!("CARGO_BIN_EXE_memtide"))
        .args(arguments.split(' '))
        .current_dir(root())
        .env("TZ", "UTC")
        .output()
        .unwrap();
    let answer = String::from_utf8(output.stdout).unwrap();
    answer.split_inclusive('\n').take(lines).collect()
}

/// `BLESS=1 cargo test -p memtide --test it pages` writes the pages anew.
#[test]
fn pages_show_what_memtide_prints() {
    for name in ["README.md", "docs/guide.md"] {
        let path = root().join(name);
        let page = std::fs::read_to_string(&path).unwrap();
        let blocks = console_blocks(&page);
        assert!(!blocks.is_empty());
        let mut fresh = page.clone();
        for (range, typed) in blocks.into_iter().rev() {
            let answer = printed(&typed);
            fresh.replace_range(range, &format!("```console\n$ memtide {typed}\n{answer}"));
        }
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, fresh).unwrap();
        } else {
            assert!(fresh == page, "{name} is stale: make docs");
        }
    }
}

/// A visitor reads a screen or two, and the first commands must set up everything.
#[test]
fn the_readme_is_short_and_begins_with_the_set_up() {
    let page = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(page.lines().count() <= 150, "{} lines", page.lines().count());
    let wide = |line: &&str| line.chars().count() > 120 && !line.starts_with('|');
    assert_eq!(page.lines().find(wide), None);
    let first = page.split("```").nth(1).unwrap();
    let commands = first.lines().skip(1).map(|line| line.split_whitespace().next());
    let commands: Vec<_> = commands.collect();
    let expected = ["scripts/run.sh", "scripts/test.sh", "target/release/memtide"];
    assert_eq!(commands, expected.map(Some));
}

#[test]
fn an_entry_of_the_changelog_has_three_lines_at_most() {
    let page = std::fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let entries = page.split("\n- ").skip(1);
    let entries = entries.map(|entry| entry.split("\n\n").next().unwrap().trim_end());
    let long: Vec<&str> = entries.filter(|entry| entry.lines().count() > 3).collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn links_in_the_pages_lead_somewhere() {
    for page in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "corpus/README.md",
        "docs/decisions/README.md",
        "docs/guide.md",
        "docs/headroom.md",
        "docs/lab.md",
        "docs/recording.md",
        "docs/report.md",
        "docs/security.md",
        "docs/sources.md",
    ] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if !target.starts_with("http") {
                assert!(
                    root().join(page).parent().unwrap().join(target).exists(),
                    "{page}: {target}"
                );
            }
        }
    }
}
