//! The tunables of a glibc, as its dynamic linker lists them: `ld.so --list-tunables`, since 2.33.
//!
//! glibc ignores a name in `GLIBC_TUNABLES` that it does not know, and a value out of range, and reports neither. Cost: it
//! starts a program, 2 ms.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use units::Span;

/// A list of 35 has 3 KiB.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
const ANSWER_TIME_MAX: Span = Span::from_secs(5);

/// A setting that `GLIBC_TUNABLES` takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlibcTunable {
    /// For instance `glibc.malloc.arena_max`.
    pub name: String,
    /// The smallest and the largest value; `None` for one that takes a text.
    pub range: Option<(i128, i128)>,
}

/// Why the tunables of a glibc are not known.
#[allow(missing_docs)] // names say it
#[derive(Debug, thiserror::Error)]
pub enum TunablesUnknown {
    #[error("cannot run {}", loader.display())]
    NotRun { loader: PathBuf, source: std::io::Error },
    /// glibc before 2.33, or another C library.
    #[error("{} does not list its tunables (glibc does since 2.33)", loader.display())]
    NotListed { loader: PathBuf },
}

/// Returns the tunables that a dynamic linker of glibc lists, by name. It is run: of this machine's own programs only, by
/// [`crate::PreloadProspect::loader`].
///
/// # Errors
/// [`TunablesUnknown`] if it cannot be run, or lists none.
pub fn glibc_tunables(loader: &Path) -> Result<Vec<GlibcTunable>, TunablesUnknown> {
    let not_run = |source| TunablesUnknown::NotRun { loader: loader.to_owned(), source };
    let mut listing = Command::new(loader)
        .arg("--list-tunables")
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(not_run)?;
    let output = listing.stdout.take();
    let listed = probe::read_within(ANSWER_TIME_MAX, move || {
        let mut text = Vec::new();
        let mut bounded = output.map(|output| output.take(ANSWER_BYTES_MAX));
        bounded.as_mut().map(|output| output.read_to_end(&mut text)).transpose().map(|_| text)
    });
    // It has ended, unless it is no dynamic linker and goes on.
    let _ = listing.kill();
    let _ = listing.wait();
    let listed = listed.map_err(|why| not_run(std::io::Error::other(why)))?.map_err(not_run)?;
    let text = String::from_utf8_lossy(&listed);
    let mut tunables: Vec<GlibcTunable> = text.lines().filter_map(parse_line).collect();
    if tunables.is_empty() {
        return Err(TunablesUnknown::NotListed { loader: loader.to_owned() });
    }
    tunables.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tunables)
}

/// `glibc.malloc.arena_max: 0x0 (min: 0x1, max: 0xffffffffffffffff)`, or `glibc.cpu.hwcaps:`.
fn parse_line(line: &str) -> Option<GlibcTunable> {
    let (name, rest) = line.split_once(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    if !name.starts_with("glibc.") || !name.chars().all(is_name) {
        return None;
    }
    let range = rest.split_once("(min: ").and_then(|(_, range)| {
        let (min, max) = range.strip_suffix(')')?.split_once(", max: ")?;
        Some((number(min)?, number(max)?))
    });
    Some(GlibcTunable { name: name.to_owned(), range })
}

fn number(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_numbers_and_of_texts_are_read() {
        let tunable = |name: &str, range| Some(GlibcTunable { name: name.to_owned(), range });
        for (line, expected) in [
            (
                "glibc.malloc.arena_max: 0x0 (min: 0x1, max: 0xffffffffffffffff)",
                tunable("glibc.malloc.arena_max", Some((1, i128::from(u64::MAX)))),
            ),
            (
                "glibc.elision.tries: 3 (min: -2147483648, max: 2147483647)",
                tunable("glibc.elision.tries", Some((i32::MIN.into(), i32::MAX.into()))),
            ),
            ("glibc.cpu.hwcaps:", tunable("glibc.cpu.hwcaps", None)),
            ("ld.so: --list-tunables: not found", None),
            ("", None),
        ] {
            assert_eq!(parse_line(line), expected, "{line}");
        }
    }
}
