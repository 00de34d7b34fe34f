#!/bin/sh
# Runs the main job on this machine. A verdict is an answer, whatever its exit code; 3 with an error is not.
set -u
memtide=${CARGO_TARGET_DIR:-target}/release/memtide
"$memtide" check
code=$?
echo
echo "exit code $code (0 ok, 1 warning, 2 critical, 3 unknown); next: $memtide where, $memtide --help"
[ "$code" -le 2 ]
