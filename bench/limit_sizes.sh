#!/bin/sh
# Runs bench/limit_sizes.py in a virtual machine with systemd and cgroup v2, under emulation: some three minutes a case.
# Usage: bench/limit_sizes.sh [CASE...]      MEMTIDE is the program, target/release/memtide without it
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
job=$(mktemp -d "${TMPDIR:-/tmp}/memtide-sizes.XXXXXX")
trap 'rm -rf "$job"' EXIT
trap 'exit 130' INT TERM HUP
cp "${MEMTIDE:-$here/target/release/memtide}" "$job/memtide"
cp "$here"/bench/cgroup_loads.py "$here"/bench/limit_sizes.py "$job"
# The machine has no Python: the one of this system, with what it needs.
mkdir -p "$job/python/bin" "$job/python/lib"
python=$(readlink -f /usr/bin/python3)
version=$(basename "$python")
cp "$python" "$job/python/bin/python3"
ldd "$python" | sed -n 's|.* \(/[^ ]*\) (.*|\1|p' | xargs -I{} cp -L {} "$job/python/lib"
rm -f "$job"/python/lib/libc.so* "$job"/python/lib/ld-linux*
cp -r "/usr/lib/$version" "$job/python/lib/$version"
cat >"$job/main" <<END
#!/bin/sh
mount -o remount,rw /
export PYTHONHOME=/job/python LD_LIBRARY_PATH=/job/python/lib PYTHONDONTWRITEBYTECODE=1
exec /job/python/bin/python3 /job/limit_sizes.py --memtide /job/memtide $*
END
chmod +x "$job/main"
"$here/scripts/systemd-vm.sh" "$job"
