#!/bin/sh
# Fetches a Debian kernel (x86-64) for the lab, unpacked and not installed: no root is needed.
# Usage: scripts/kernel.sh [PACKAGE [SUITE]], such as linux-image-cloud-amd64 bullseye. Without a suite it comes from this
# system's own sources.
set -eu
kernels=${XDG_CACHE_HOME:-$HOME/.cache}/memtide/kernels
meta=${1:-linux-image-cloud-amd64}
suite=${2:-}
if ! command -v apt-get >/dev/null 2>&1; then
    echo "error: there is no apt-get" >&2
    echo "help: name a kernel image: memtide lab run NAME --kernel FILE" >&2
    exit 3
fi
mkdir -p "$kernels"
# As root, apt would download as a user that may not write here.
sandbox="-o APT::Sandbox::User=$(id -un)"
work=$(mktemp -d "$kernels/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
# On a signal dash would end without running the EXIT trap.
trap 'exit 130' INT TERM
# shellcheck disable=SC2086 # a list
apt() { apt-get $sandbox "$@"; }
cache() { apt-cache "$@"; }
if [ -n "$suite" ]; then
    # Lists of their own: this system's are not changed.
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
    echo "deb [arch=amd64 signed-by=$keyring] $mirror $suite main" >"$work/sources.list"
    options="-o Dir::Etc::sourcelist=$work/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$work/lists
        -o Dir::Cache=$work/cache"
    # shellcheck disable=SC2086 # a list
    apt() { apt-get $sandbox $options "$@"; }
    # shellcheck disable=SC2086 # a list
    cache() { apt-cache $options "$@"; }
    apt update -qq >/dev/null
fi
# A meta package depends on the package of one version; without such a dependency it is that package itself.
package=$(cache depends "$meta" | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
package=${package:-$meta}
target=$kernels/$package
link() { # the kernel fetched without a suite is the lab's default
    [ -n "$suite" ] || ln -sfn "$package" "$kernels/default"
}
if [ -d "$target" ]; then
    link
    exit 0
fi
mkdir "$work/unpacked"
# Since 7.0 image and modules are separate packages.
parts=$(cache depends "$package" | sed -n 's/^ *Depends: \(linux-\(base\|binary\|modules\)-[0-9].*\)/\1/p')
binary=$(echo "$parts" | grep binary || true)
[ -n "$binary" ] && parts="$parts $(cache depends "$binary" | sed -n 's/^ *Depends: \(linux-modules-[0-9].*\)/\1/p')"
# shellcheck disable=SC2086 # a list
(cd "$work" && apt download -qq "$package" $parts >/dev/null && for deb in *.deb; do dpkg -x "$deb" unpacked; done)
# A fetch at the same time may have been faster.
mv -T "$work/unpacked" "$target" 2>/dev/null || [ -d "$target" ]
link
echo "fetched: $target"
