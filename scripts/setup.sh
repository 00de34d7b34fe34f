#!/bin/sh
# Installs what `make run` (build) or `make test` (test) needs and is missing. Debian and its relatives; elsewhere it says what is missing.
set -eu
want=${1:-build}

if ! command -v cargo >/dev/null 2>&1; then
    [ -x "$HOME/.cargo/bin/cargo" ] && { echo "error: cargo is in $HOME/.cargo/bin, which is not in PATH" >&2
        echo "help: . \"$HOME/.cargo/env\"" >&2; exit 3; }
    echo "error: no Rust toolchain" >&2
    echo "help: get one by rustup: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh" >&2
    exit 3
fi

packages=
need() { command -v "$1" >/dev/null 2>&1 || packages="$packages $2"; }
need cc "gcc libc6-dev" # links, and builds zstd
[ -e /usr/include/stdlib.h ] || packages="$packages libc6-dev"
if [ "$want" = test ]; then
    need python3 python3
    python3 -c 'import venv, ensurepip' 2>/dev/null || packages="$packages python3-venv"
fi
[ -z "$packages" ] && exit 0

echo "installing:$packages"
if ! command -v apt-get >/dev/null 2>&1; then
    echo "error: missing, and there is no apt-get:$packages" >&2
    exit 3
fi
if [ "$(id -u)" = 0 ]; then sudo=; elif command -v sudo >/dev/null 2>&1; then sudo=sudo; else
    echo "error: missing:$packages" >&2
    echo "help: as root: apt-get install$packages" >&2
    exit 3
fi
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
# shellcheck disable=SC2086 # a list
$sudo apt-get install -yqq --no-install-recommends $packages >/dev/null
