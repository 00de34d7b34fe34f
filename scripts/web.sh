#!/bin/sh
# The program and style of the HTML report, and the style of the lab's pages. `build` writes their assets anew; `test`
# checks types, fails where what is committed is not what web/ builds, and tests it: pages in Chromium are made by the binary
# that MEMTIDE names, and by the example page_data beside it (cargo build --package memtide-answers --example page_data);
# `pictures DIR [all]` makes screenshots of such pages; `speed RECORDING [RUNS [MEMTIDE...]]` measures how long a reader of
# `memtide serve` waits, by each of these programs in turn.
set -eu
cd "$(dirname "$0")/.."
want=${1:-test}
assets=crates/report/assets
of_lab=crates/lab/assets
memtide=${MEMTIDE:-${CARGO_TARGET_DIR:-target}/release/memtide}

major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')
if [ "${major:-0}" -lt 18 ]; then
    echo "error: web/ needs node 18 or later; this is ${major:-none}" >&2
    echo "help: scripts/setup.sh test" >&2
    exit 3
fi
# Installed once, and again when the lock file changes.
if ! cmp -s web/package-lock.json web/node_modules/.installed; then
    (cd web && npm ci --no-fund --no-audit --loglevel=error)
    cp web/package-lock.json web/node_modules/.installed
fi
tool() { # of web/node_modules, in web/
    (cd web && PATH="$PWD/node_modules/.bin:$PATH" "$@")
}

case $want in
build)
    tool vite build --logLevel warn
    MEMTIDE_PROGRAM=served tool vite build --logLevel warn
    mv "$assets/lab.css" "$assets/figure.css" "$of_lab"
    wc -c "$assets/page.js" "$assets/page.css" "$assets/served.js"
    exit
    ;;
pictures)
    mkdir -p "${2:?usage: scripts/web.sh pictures DIR [all]}"
    MEMTIDE=$(realpath "$memtide") tool vite-node screenshots.ts "$(realpath "$2")" ${3:+"$3"}
    exit
    ;;
speed)
    recording=$(realpath "${2:?usage: scripts/web.sh speed RECORDING [RUNS [MEMTIDE...]]}")
    runs=${3:-5}
    shift $(($# < 3 ? $# : 3))
    [ $# -gt 0 ] || set -- "$(realpath "$memtide")"
    tool vite-node speed.ts "$recording" "$runs" "$@"
    exit
    ;;
esac

tool tsc --noEmit
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
MEMTIDE_ASSETS=$built tool vite build --logLevel warn
MEMTIDE_ASSETS=$built MEMTIDE_PROGRAM=served tool vite build --logLevel warn
for file in $assets/page.js $assets/page.css $assets/served.js $assets/served.css $assets/compare.css $assets/explain.css $of_lab/lab.css $of_lab/figure.css; do
    cmp -s "$built/$(basename "$file")" "$file" && continue
    echo "error: $file is not what web/ builds" >&2
    echo "help: make web" >&2
    exit 1
done
# The page is mailed: program and style have 120 KiB in all.
if [ "$(cat "$built"/page.* | wc -c)" -gt $((120 * 1024)) ]; then
    echo "error: $assets is larger than 120 KiB" >&2
    exit 1
fi
if [ -x "$memtide" ]; then
    MEMTIDE=$(realpath "$memtide")
    export MEMTIDE
fi
if [ -x "$(dirname "$memtide")/examples/page_data" ]; then
    PAGE_DATA=$(realpath "$(dirname "$memtide")/examples/page_data")
    export PAGE_DATA
fi
tool vitest run
