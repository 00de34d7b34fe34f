#!/bin/sh
# A week of abuse in an hour: kills, damaged files, full disks, clocks that are set, and what was lost, as a table.
# --tenth: a tenth of it, as the test suite runs it; --seed N: repeats a run. Needs root, python3 and a memory cgroup (v1).
# --hostile: opens each hostile source in full with every command instead, and prints what each cost, as a table; then an
# ordinary user tries root's memtide: homes, names, messages of kills, processes that answer late or never.
set -eu
cd "$(dirname "$0")/.."
part=1
while [ $# -gt 0 ]; do
    case $1 in
    --tenth) part=10 ;;
    --hostile)
        MEMTIDE_HOSTILE=whole exec cargo test --quiet --locked --release --package memtide --test it -- --nocapture hostile:: foreign_places:: kills:: silent_processes::
        ;;
    --seed)
        [ $# -gt 1 ] || { echo "error: --seed needs a number" >&2; exit 3; }
        export MEMTIDE_ABUSE_SEED="$2"
        shift
        ;;
    *)
        echo "error: unknown option \`$1\`; --tenth, --hostile and --seed N are known" >&2
        exit 3
        ;;
    esac
    shift
done
MEMTIDE_ABUSE_PART=$part exec cargo test --quiet --locked --package memtide --test abuse -- --nocapture
