#!/bin/sh
# Sets up and runs all tests. The last line counts them.
set -eu
cd "$(dirname "$0")/.."
# A machine of CI builds once: no caches for the next build, which take ten times the place of what is built.
[ -z "${CI:-}" ] || export CARGO_INCREMENTAL=0
scripts/setup.sh test
echo "== format, clippy, licences"
scripts/lint.sh
echo "== release build"
cargo build --quiet --locked --release --package memtide --package memtide-answers --bins --examples
echo "== web"
scripts/web.sh test
echo "== tests"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
cargo test --locked --workspace --no-fail-fast >"$log" 2>&1 || code=$?
grep -vE '^$|^running |^test .* ok$|^ *(Compiling|Downloaded|Downloading|Finished|Running|Doc-tests)' "$log" || true
awk '/^test result:/ { passed += $4; failed += $6; skipped += $8 }
     END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }' "$log"
exit "$code"
