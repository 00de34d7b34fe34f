#!/bin/sh
# Fetches a kernel of the distribution for the lab, unpacked and not installed: no root is needed.
# Usage: scripts/kernel.sh [PACKAGE], such as linux-image-6.12-cloud-amd64.
set -eu
kernels=${XDG_CACHE_HOME:-$HOME/.cache}/memtide/kernels
meta=${1:-linux-image-cloud-amd64}
if ! command -v apt-get >/dev/null 2>&1; then
    echo "error: there is no apt-get" >&2
    echo "help: name a kernel image: memtide lab run NAME --kernel FILE" >&2
    exit 3
fi
# A meta package depends on that of a version; one of a version has that itself.
package=$(apt-cache depends "$meta" | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
package=${package:-$meta}
target=$kernels/$package
[ -d "$target/boot" ] && exit 0
mkdir -p "$kernels"
work=$(mktemp -d "$kernels/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
(cd "$work" && apt-get download -qq "$package" 2>/dev/null && dpkg -x ./*.deb unpacked)
rm -rf "$target"
mv "$work/unpacked" "$target"
echo "fetched: $target"
