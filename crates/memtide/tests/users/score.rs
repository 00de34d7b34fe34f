//! What was tried, and what came of it, a line each.

use std::time::Instant;

/// How the line of a failed check begins.
pub(crate) const FAILED: &str = "FAILED";
/// How the last line begins.
pub(crate) const DONE: &str = "done:";

/// Counts and prints checks.
pub(crate) struct Score {
    began: Instant,
    ok: usize,
    failed: usize,
}

impl Score {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), ok: 0, failed: 0 }
    }

    /// Prints a check: what must be so, whether it is, and what was seen.
    pub(crate) fn check(&mut self, row: &str, must: &str, is_so: bool, seen: &str) {
        let word = if is_so {
            self.ok += 1;
            "ok"
        } else {
            self.failed += 1;
            FAILED
        };
        let at = self.began.elapsed().as_secs();
        let seen = seen.replace(|c: char| c.is_control(), " ");
        println!("{word:<6} {row:<6} {must}   [{at} s] {seen}");
    }

    /// Prints what is no check.
    pub(crate) fn note(&self, text: &str) {
        println!("       {text}   [{} s]", self.began.elapsed().as_secs());
    }

    pub(crate) fn end(&self) {
        println!("{DONE} {} ok, {} failed", self.ok, self.failed);
    }
}
