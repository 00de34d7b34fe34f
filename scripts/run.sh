#!/bin/sh
# Sets up, builds, and checks this machine. A verdict is an answer, whatever its exit code; 3 with an error is not.
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh build
cargo build --release --locked --package memtide
memtide=${CARGO_TARGET_DIR:-target}/release/memtide
code=0
"$memtide" check || code=$?
echo
echo "exit code $code (0 ok, 1 warning, 2 critical, 3 unknown); next: $memtide where, $memtide --help"
[ "$code" -le 2 ]
