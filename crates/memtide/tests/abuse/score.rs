//! What a chapter found.

/// Faults of a chapter, each in words; all must be none.
#[derive(Debug, Default)]
pub(crate) struct Score {
    /// What was done, for the table.
    pub(crate) done: String,
    /// Samples lost beyond five seconds.
    pub(crate) lost: Vec<String>,
    /// Readings that differ from the truth.
    pub(crate) wrong: Vec<String>,
    /// Losses that no note or event names.
    pub(crate) silent: Vec<String>,
    pub(crate) panics: Vec<String>,
    pub(crate) refused: Vec<String>,
    /// Readings that were compared with the truth.
    pub(crate) compared: usize,
}

impl Score {
    fn columns(&self) -> [&Vec<String>; 5] {
        [&self.lost, &self.wrong, &self.silent, &self.panics, &self.refused]
    }

    pub(crate) fn faults(&self) -> Vec<String> {
        let named = ["lost", "wrong", "silent", "panic", "refused"].into_iter().zip(self.columns());
        named
            .flat_map(|(kind, faults)| {
                faults.iter().take(5).map(move |fault| format!("{kind}: {fault}"))
            })
            .collect()
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.lost.extend(other.lost);
        self.wrong.extend(other.wrong);
        self.silent.extend(other.silent);
        self.panics.extend(other.panics);
        self.refused.extend(other.refused);
        self.compared += other.compared;
    }
}

pub(crate) fn print(scores: &[(&str, Score)]) {
    println!(
        "{:<8} {:>13} {:>7} {:>13} {:>7} {:>8} {:>9}  done",
        "", "lost > 5 s", "wrong", "silent losses", "panics", "refused", "compared"
    );
    for (name, score) in scores {
        let [lost, wrong, silent, panics, refused] = score.columns().map(Vec::len);
        println!(
            "{name:<8} {lost:>13} {wrong:>7} {silent:>13} {panics:>7} {refused:>8} {:>9}  {}",
            score.compared, score.done
        );
    }
}
