//! Conventions of the source that no lint checks: names of types, words, chains of iterators, and sentences of findings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::cases;
use crate::support::root;

/// A source file without its inline tests.
struct SourceFile {
    /// Its path below `crates`, without `src`.
    path: String,
    code: String,
}

/// All sources of the workspace but tests and fixtures.
static SOURCES: LazyLock<Vec<SourceFile>> = LazyLock::new(|| {
    let crates = root().join("crates");
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&crates).unwrap() {
        collect(&entry.unwrap().path().join("src"), &mut paths);
    }
    paths.sort();
    let read = |path: &PathBuf| SourceFile {
        path: path.strip_prefix(&crates).unwrap().to_str().unwrap().replace("/src/", "/"),
        code: without_tests(&std::fs::read_to_string(path).unwrap()),
    };
    let is_test = |file: &SourceFile| {
        ["/tests", "testing", "fixtures"].iter().any(|part| file.path.contains(part))
    };
    paths.iter().map(read).filter(|file| !is_test(file)).collect()
});

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

fn without_tests(code: &str) -> String {
    let end = code.find("#[cfg(test)]\nmod tests {").unwrap_or(code.len());
    code.get(..end).unwrap().to_owned()
}

/// The name of the type that a line defines; associated types of a trait or an `impl` are none.
fn defined_type(line: &str) -> Option<&str> {
    let indent = line.len() - line.trim_start().len();
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    let keyword = words.next()?;
    let is_type = ["struct", "enum", "trait", "union"].contains(&keyword)
        || (keyword == "type" && indent == 0);
    let name = words.next().filter(|_| is_type)?;
    let end = name.find(|c: char| !c.is_alphanumeric()).unwrap_or(name.len());
    name.get(..end).filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// One name is one thing. The JSON contract alone, `report::model`, repeats names of what it shows.
#[test]
fn names_of_types_are_unique_in_the_workspace() {
    let mut places: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in SOURCES.iter().filter(|file| !file.path.starts_with("report/model")) {
        for name in file.code.lines().filter_map(defined_type) {
            places.entry(name).or_default().insert(&file.path);
        }
    }
    let shared = places.into_iter().filter(|(_, places)| places.len() > 1);
    let shared: Vec<String> = shared.map(|(name, places)| format!("{name}: {places:?}")).collect();
    assert!(shared.is_empty(), "\n{}\nrename the narrower one", shared.join("\n"));
}

/// Words that say less than the standard term, and in how many lines of the sources each may still stand. Numbers may only
/// become smaller.
const WORDS: [(&str, usize); 25] = [
    ("told", 1),
    ("tells", 0),
    ("whose", 0),
    ("dear", 0),
    ("dearer", 0),
    ("grave", 0),
    ("graver", 0),
    ("gravest", 0),
    ("milder", 0),
    ("lately", 0),
    ("of which nobody", 0),
    ("nobody knows", 0),
    ("for want of", 0),
    ("came back", 0),
    ("comes back", 0),
    ("crowd", 0),
    ("without a word", 0),
    ("no secret", 0),
    ("the former", 1),
    ("the latter", 2),
    ("downwards", 5),
    ("be it", 1),
    ("a look", 4),
    ("looks at", 0),
    ("said", 0),
];

/// How many lines have a word or a phrase, whatever its case.
fn lines_with(phrase: &str) -> usize {
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let has = |line: &str| {
        let line = line.to_lowercase();
        line.match_indices(phrase).any(|(start, found)| {
            let (before, after) =
                (line.get(..start).unwrap(), line.get(start + found.len()..).unwrap());
            !is_letter(before.chars().next_back()) && !is_letter(after.chars().next())
        })
    };
    let lines = SOURCES.iter().flat_map(|file| file.code.lines());
    lines.filter(|line| has(line)).count()
}

#[test]
fn words_of_no_standard_become_fewer() {
    let counts = WORDS.map(|(word, most)| (word, most, lines_with(word)));
    let more: Vec<_> = counts.into_iter().filter(|(_, most, found)| found > most).collect();
    assert!(
        more.is_empty(),
        "(word, allowed, found): {more:?}: docs/glossary.md has the standard words"
    );
}

/// How many chains may still be bound again under their own name: `let rows = x.iter(); let rows = rows.map(…);`.
const REBOUND: usize = 14;

#[test]
fn chains_that_are_bound_again_become_fewer() {
    let is_rebound = |line: &&str| {
        let Some((name, value)) =
            line.trim_start().strip_prefix("let ").and_then(|rest| rest.split_once(" = "))
        else {
            return false;
        };
        let adapters = [
            ".map(",
            ".filter(",
            ".filter_map(",
            ".flat_map(",
            ".zip(",
            ".rev(",
            ".skip(",
            ".chain(",
        ];
        let chain = value.strip_prefix(name.trim_start_matches("mut "));
        chain.is_some_and(|chain| adapters.iter().any(|adapter| chain.starts_with(adapter)))
    };
    let count = SOURCES.iter().flat_map(|file| file.code.lines()).filter(is_rebound).count();
    assert!(
        count <= REBOUND,
        "{count} chains are bound again under their own name, {REBOUND} are allowed: write one \
         chain"
    );
}

/// How many comments of documentation may still be one or two words: `/// Its size.` above `size` says nothing, a unit or an
/// origin would. Public items of which the name says it all stand below `#[allow(missing_docs)]`.
const SHORT_DOCS: usize = 311;

#[test]
fn comments_of_two_words_become_fewer() {
    let doc = |line: &str| line.trim_start().strip_prefix("///").map(str::to_owned);
    let mut count = 0;
    for file in SOURCES.iter() {
        let docs: Vec<Option<String>> = file.code.lines().map(doc).collect();
        let alone = docs.split(Option::is_none).filter(|comment| comment.len() == 1);
        let texts = alone.flatten().flatten();
        count += texts.filter(|text| text.split_whitespace().count() <= 2).count();
    }
    assert!(count <= SHORT_DOCS, "{count} comments have two words, {SHORT_DOCS} are allowed");
}

/// A bound is named after what it bounds, with `MAX` or `MIN` last: `NAME_LEN_MAX`, never `LONGEST_NAME` or `MOST`.
#[test]
fn bounds_end_with_max_or_min() {
    let superlatives = ["MOST", "LEAST", "LONGEST", "SHORTEST", "LARGEST", "SMALLEST"];
    let is_wrong = |line: &&str| {
        let name = line.split("const ").nth(1).and_then(|rest| rest.split(':').next());
        name.is_some_and(|name| superlatives.iter().any(|word| name.starts_with(word)))
    };
    let wrong: Vec<&str> =
        SOURCES.iter().flat_map(|file| file.code.lines()).filter(is_wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The name and the type of the constant that a line at the left margin declares.
fn declared_constant(line: &str) -> Option<(&str, &str)> {
    let public = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub(super) "));
    let declaration = public.or_else(|| line.strip_prefix("pub ")).unwrap_or(line);
    let (name, rest) = declaration.strip_prefix("const ")?.split_once(": ")?;
    Some((name, rest.split_once(" =")?.0))
}

/// A threshold that is bytes a second in one rule and pages a second in another is read wrong in one of them.
#[test]
fn a_constant_of_diagnose_has_one_unit() {
    let mut types: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let files = SOURCES.iter().filter(|file| file.path.starts_with("diagnose/"));
    for (name, unit) in files.flat_map(|file| file.code.lines()).filter_map(declared_constant) {
        types.entry(name).or_default().insert(unit);
    }
    assert!(types.contains_key("AVAILABLE_LOW_SHARE"));
    types.retain(|_, units| units.len() > 1);
    assert!(types.is_empty(), "{types:#?}");
}

/// What no sentence may hold: typing errors, numbers that are none, and what was left to be filled in.
const NEVER: [&str; 8] = ["  ", " ; ", " ,", " .", "..", "NaN", "TODO", "{}"];

/// Whether a sentence ends before the end of the text: at a full stop before a blank and a capital.
fn has_more(text: &str) -> bool {
    let ends = text.match_indices(". ");
    let begins = |(at, _): (usize, &str)| text.get(at + 2..).and_then(|rest| rest.chars().next());
    ends.filter_map(begins).any(|first| first.is_uppercase() || first.is_ascii_digit())
}

#[test]
fn sentences_of_findings_follow_the_convention() {
    let mut wrong = BTreeSet::new();
    for finding in cases::all().iter().flat_map(|case| case.judged().reported()) {
        let id = finding.id;
        let sentences = [("title", &*finding.title), ("cause", &*finding.cause)];
        for (part, text) in sentences {
            if !text.ends_with(['.', '?']) {
                wrong.insert(format!("{id}: {part} ends without a full stop: {text}"));
            }
            // A name, a path or a setting is written as it is.
            let first = text.split_whitespace().next().unwrap_or_default();
            let is_plain_word = first.chars().all(|c| c.is_ascii_lowercase());
            if first.is_empty() || (is_plain_word && part == "cause") {
                wrong.insert(format!("{id}: {part} begins with a lower-case word: {text}"));
            }
            if part == "title" && has_more(finding.title.first()) {
                wrong.insert(format!("{id}: the first sentence of the title has two: {text}"));
            }
            if text.chars().count() > 400 {
                wrong.insert(format!("{id}: {part} is longer than 400 characters: {text}"));
            }
        }
        let others = finding.evidence.iter().map(|line| &*line.text);
        for text in others.chain(sentences.map(|(_, text)| text)).chain([&*finding.verify]) {
            // A path is quoted from the source, and may hold anything.
            let words = text.split(' ').filter(|word| !word.contains('/'));
            let own = words.collect::<Vec<_>>().join(" ");
            for never in NEVER.iter().filter(|never| own.contains(**never)) {
                wrong.insert(format!("{id}: `{never}` in: {text}"));
            }
        }
    }
    let wrong: Vec<String> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
