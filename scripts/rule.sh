#!/bin/sh
# Scaffolds a rule: its file with the five headings, its lines in rules.rs, and the host that shows its answer.
set -eu
id=${1:?usage: make rule NAME=id-of-the-pathology}
case $id in *[!a-z0-9-]* | -* | *-) echo "error: \`$id\`: lower-case words joined by hyphens" >&2; exit 3 ;; esac
file=$(printf %s "$id" | tr - _)
rules=crates/diagnose/src/rules
[ ! -e "$rules/$file.rs" ] || { echo "error: $rules/$file.rs is there already" >&2; exit 3; }
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
cat >"$rules/$file.rs" <<EOF
//! One line: what the pathology is.

use timeline::signals::PSI_MEMORY_SOME;

use crate::prelude::*;

declare_rule! {
    /// One sentence.
    ///
    /// ## What it means
    /// ## How it is recognised
    /// Memory stalls of {THRESHOLD} of the time or more for {STALL} or longer.
    /// ## Not this
    /// ## What to do
    /// ## References
    pub(crate) RULE = {
        id: "$id", since: "$version", class: Stall,
        numbers: [THRESHOLD, STALL],
        trigger: trigger, waits: Memory, story: story,
        cause: "Why it happens.",
        verify: "How to see that a fix worked.",
    }
}

/// Where this number comes from.
const THRESHOLD: Ratio = Ratio::from_percent(10.0);

fn trigger() -> Trigger {
    let waits = stall(PSI_MEMORY_SOME).at_least("memory stalls", THRESHOLD);
    Trigger::on_host(STALL, waits)
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stalled = cx.stall(PSI_MEMORY_SOME)?;
    let some = cx.mean_in(&incident.stretch, PSI_MEMORY_SOME, &stalled)?;
    let title = format!("One sentence with its number: {some}.");
    let text = format!("memory stalls: {some}");
    Ok(RULE
        .found(Severity::Warning, title)
        .shows_from(PSI_MEMORY_SOME, some, THRESHOLD, None, text)
        .counts_as("memory stalls")
        .sure_by_kinds(cx, "")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found};

    /// Calm, with some seconds of it in the middle.
    fn within_calm(seconds: usize) -> Case {
        let mut steps = vec![0; 600];
        steps[300..300 + seconds].fill(300_000);
        Case::over(600).counter_steps(PSI_MEMORY_SOME, &steps)
    }

    #[test]
    fn fires_when_it_is_there_however_long_the_calm_around_it() {
        found(RULE, &within_calm(30));
    }

    #[test]
    fn is_clear_when_it_is_not() {
        clear(RULE, &within_calm(0));
    }
}
EOF
sed -i "0,/^mod /s//mod $file;\nmod /; s/^    unexplained_stall::RULE,/    $file::RULE,\n&/" "$rules.rs"
rustfmt --edition 2024 --config skip_children=true "$rules.rs" 2>/dev/null || cargo fmt
case=corpus/made-up/$id
mkdir -p "$case"
printf '%s\n' 'host of 60 s' 'mem.total 16G' 'mem.available 8G' 'psi.memory.some +200000' >"$case/host.txt"
cat >"$case/case.toml" <<EOF
[labels]
must_find = ["$id"]
must_not_find = []
calm = false

[made]
by = "hand"
load = "invented readings, no host had them"
EOF
echo "$rules/$file.rs: write the rule and its tests (CONTRIBUTING.md)"
echo "$case/host.txt: describe a host that shows it, or remove it and label a real case"
