#!/bin/sh
# Installs what scripts/run.sh (build), scripts/test.sh (test), make test-heap (heap) or make test-users (users) needs and is missing. Debian and its
# relatives; elsewhere it says what is missing.
set -eu
want=${1:-build}
rustup="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"

if ! command -v cargo >/dev/null 2>&1; then
    if [ -x "$HOME/.cargo/bin/cargo" ]; then
        echo "error: cargo is in $HOME/.cargo/bin, which is not in PATH" >&2
        echo "help: . \"$HOME/.cargo/env\"" >&2
    else
        echo "error: no Rust toolchain" >&2
        echo "help: get one by rustup: $rustup" >&2
    fi
    exit 3
fi
needs=$(sed -n 's/^rust-version = "1\.\([0-9]*\)".*/\1/p' Cargo.toml)
has=$(cargo --version | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p')
if [ -n "$has" ] && [ "$has" -lt "$needs" ]; then
    echo "error: cargo 1.$has is too old; memtide needs 1.$needs or later" >&2
    echo "help: get one by rustup: $rustup" >&2
    exit 3
fi

packages=
need() { # once each
    case " $packages " in *" $1 "*) ;; *) packages="$packages $1" ;; esac
}
command -v cc >/dev/null 2>&1 || need gcc # links, builds zstd and the heap reader's target
[ -e /usr/include/stdlib.h ] || need libc6-dev
command -v "${CLANG:-clang}" >/dev/null 2>&1 || need clang # the program that reads tasks; without it /proc is read
if [ "$want" = test ]; then
    command -v python3 >/dev/null 2>&1 || need python3
    python3 -c 'import venv, ensurepip' 2>/dev/null || need python3-venv
    # The system's Python, whichever stands first on the path.
    /usr/bin/python3 -c 'import prometheus_client' 2>/dev/null || need python3-prometheus-client # judges the metrics, too
    command -v sadf >/dev/null 2>&1 || need sysstat # reads and writes the recordings that a test compares with
    command -v node >/dev/null 2>&1 || need nodejs # builds and tests web/
    command -v npm >/dev/null 2>&1 || need npm
    [ -n "${CHROMIUM:-}" ] || command -v chromium >/dev/null 2>&1 || need chromium # opens the report's pages
    [ -e /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf ] || need fonts-dejavu-core # what they are written with there
    command -v qemu-system-x86_64 >/dev/null 2>&1 || need qemu-system-x86 # runs the lab's machines
    # Serves the host's files to them; up to Debian 12 it comes with QEMU.
    debian=$(sed -n 's/^VERSION_ID="\{0,1\}\([0-9]*\).*/\1/p' /etc/os-release 2>/dev/null)
    [ "${debian:-0}" -le 12 ] || [ -x /usr/libexec/virtiofsd ] || need virtiofsd
    [ -x /usr/sbin/mke2fs ] || command -v mke2fs >/dev/null 2>&1 || need e2fsprogs
    command -v systemd-analyze >/dev/null 2>&1 || need systemd                            # judges the recorder's unit; nothing of it runs
    # Programs that other allocators serve, and why not.
    ls /usr/lib/*/libjemalloc.so.2 >/dev/null 2>&1 || need libjemalloc2
    ls /usr/lib/*/libtcmalloc_minimal.so.4 >/dev/null 2>&1 || need libtcmalloc-minimal4
    ls /usr/lib/*/libmimalloc.so.2 >/dev/null 2>&1 || need libmimalloc2.0
    command -v musl-gcc >/dev/null 2>&1 || need musl-tools
    command -v redis-check-rdb >/dev/null 2>&1 || need redis-tools # is the server, too; its own package starts one
    [ -x /usr/sbin/setcap ] || command -v setcap >/dev/null 2>&1 || need libcap2-bin
    command -v promtool >/dev/null 2>&1 || need prometheus                                # judges the metrics
    command -v prometheus-node-exporter >/dev/null 2>&1 || need prometheus-node-exporter # its values are compared with ours
fi
if [ "$want" = heap ]; then
    [ -x /usr/sbin/debootstrap ] || command -v debootstrap >/dev/null 2>&1 || need debootstrap # other versions of glibc
    command -v musl-gcc >/dev/null 2>&1 || need musl-tools # a malloc that is not glibc's
    ls /usr/lib/*/libjemalloc.so.2 >/dev/null 2>&1 || need libjemalloc2 # another, preloaded
fi
if [ "$want" = users ]; then
    [ -x /usr/sbin/debootstrap ] || command -v debootstrap >/dev/null 2>&1 || need debootstrap # a system with systemd
    command -v qemu-system-x86_64 >/dev/null 2>&1 || need qemu-system-x86                     # runs it
    [ -x /usr/sbin/mke2fs ] || command -v mke2fs >/dev/null 2>&1 || need e2fsprogs
fi
[ -z "$packages" ] && exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "error: missing, and there is no apt-get:$packages" >&2
    exit 3
fi
if [ "$(id -u)" = 0 ]; then
    sudo=
elif command -v sudo >/dev/null 2>&1; then
    sudo=sudo
else
    echo "error: missing:$packages" >&2
    echo "help: as root: apt-get install$packages" >&2
    exit 3
fi
echo "installing:$packages"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
# shellcheck disable=SC2086 # a list
$sudo apt-get install -yqq --no-install-recommends $packages >/dev/null
