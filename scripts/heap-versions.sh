#!/bin/sh
# Makes a small Debian root for each glibc on which the heap reader is proven, with the target compiled inside, and prints for
# each: root SUITE GLIBC DIRECTORY. Present roots are reused; the target is compiled again when its source changed.
# Usage: scripts/heap-versions.sh [SUITE...]
#        scripts/heap-versions.sh --start SUITE ARGUMENTS...     the target inside, same PID as this process
#        scripts/heap-versions.sh --contain SUITE ARGUMENTS...   the same in a PID namespace of its own
# Needs root (debootstrap, chroot) and about 300 MB for a root. DEBIAN_MIRROR replaces this system's own mirror.
set -eu
roots=${XDG_CACHE_HOME:-$HOME/.cache}/memtide/roots
source=$(cd "$(dirname "$0")/.." && pwd)/crates/heap/tests/target/target.c
[ "$(id -u)" = 0 ] || { echo "error: making and entering roots needs root" >&2; exit 3; }

case ${1:-} in
--start | --contain)
    mode=$1 root=$roots/${2:?a suite}
    shift 2
    [ -x "$root/target/target" ] || { echo "error: no root in $root; run scripts/heap-versions.sh" >&2; exit 3; }
    # shellcheck disable=SC2016 # of the inner shell
    inside='mount -t proc proc "$0/proc" && exec chroot "$0" /target/target "$@"'
    # Its mounts are private and go with it; exec keeps the PID.
    [ "$mode" = --start ] && exec unshare --mount sh -c "$inside" "$root" "$@"
    exec unshare --mount --pid --fork --kill-child sh -c "$inside" "$root" "$@"
    ;;
esac

command -v debootstrap >/dev/null 2>&1 || (cd "$(dirname "$0")/.." && scripts/setup.sh heap) >&2
mirror=$("$(dirname "$0")/debian-mirror.sh")
mkdir -p "$roots"
work=
trap '[ -z "$work" ] || rm -rf --one-file-system "$work"' EXIT
# On a signal dash would end without running the EXIT trap.
trap 'exit 130' INT TERM

fetch() { # SUITE
    work=$(mktemp -d "$roots/.fetch.XXXXXX")
    if debootstrap --variant=minbase --include=gcc,libc6-dev "$1" "$work" "$mirror" >"$roots/$1.log" 2>&1; then
        # What neither compiling nor running needs.
        rm -rf "$work"/var/cache/apt/* "$work"/var/lib/apt/lists/* "$work"/usr/share/doc "$work"/usr/share/man \
            "$work"/usr/share/locale "$work"/usr/share/info
        chmod 755 "$work"
        mv -T "$work" "$roots/$1" && work= && return
    fi
    tail -n 3 "$roots/$1.log" >&2
    rm -rf --one-file-system "$work"
    work=
    return 1
}

compile() { # SUITE
    root=$roots/$1
    mkdir -p "$root/target"
    cmp -s "$source" "$root/target/target.c" && [ -x "$root/target/target-static" ] && return
    cp "$source" "$root/target/target.c.new"
    for static in '' -static; do
        chroot "$root" cc -O1 -pthread $static -x c -o "/target/target$static" /target/target.c.new || return 1
    done
    mv "$root/target/target.c.new" "$root/target/target.c" # last: it says that both are compiled
}

failed=
[ $# -gt 0 ] || set -- bullseye bookworm trixie sid
for suite in "$@"; do
    if { [ -d "$roots/$suite" ] || fetch "$suite"; } && compile "$suite" &&
        glibc=$(chroot "$roots/$suite" getconf GNU_LIBC_VERSION); then
        echo "root $suite ${glibc#glibc } $roots/$suite"
    else
        echo "error: no root of $suite from $mirror; $roots/$suite.log" >&2
        failed="$failed $suite"
    fi
done
[ -z "$failed" ] || { echo "error: without:$failed" >&2; exit 1; }
