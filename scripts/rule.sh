#!/bin/sh
# Scaffolds a rule: its file with the five headings, and its lines in rules/mod.rs.
set -eu
id=${1:?usage: make rule NAME=id-of-the-pathology}
case $id in *[!a-z0-9-]* | -* | *-) echo "error: \`$id\`: lower-case words joined by hyphens" >&2; exit 3 ;; esac
file=$(printf %s "$id" | tr - _)
rules=crates/diagnose/src/rules
[ ! -e "$rules/$file.rs" ] || { echo "error: $rules/$file.rs is there already" >&2; exit 3; }
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
cat >"$rules/$file.rs" <<EOF
//! One line: what the pathology is.

use crate::evidence::Evidence;
use crate::missing::Missing;
use crate::rule::{Outcome, clear, declare_rule};

declare_rule! {
    /// One sentence.
    ///
    /// ## What it means
    /// ## How it is recognised
    /// ## Not this
    /// ## What to do
    /// ## References
    pub(crate) RULE = { id: "$id", since: "$version", purpose: Finding, check: check }
}

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let ram = cx.ram()?;
    clear!("nothing is looked for yet on {ram}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, found};

    #[test]
    fn fires_when_it_is_there() {
        found(RULE, &Case::over(30));
    }
}
EOF
sed -i "0,/^mod /s//mod $file;\nmod /; s/^pub const ALL: &\[Rule\] = &\[/&\n    $file::RULE,/" "$rules/mod.rs"
rustfmt --edition 2024 --config skip_children=true "$rules/mod.rs" 2>/dev/null || cargo fmt
echo "$rules/$file.rs: write the rule, then a case for it"
