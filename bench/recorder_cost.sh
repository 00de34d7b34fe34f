#!/bin/sh
# What a sample costs: memtide record beside sadc, atop, top, pidstat, PCP, node_exporter, below and minimal recorders in
# C that do nothing but read, encode and write: CPU of each, children included, in one run over the same processes.
#
#   bench/recorder_cost.sh [N...]      N extra processes; default: 20 500 2000
#
# The minimal recorders know no cgroups, so memtide is run without them.
#
# Needs root, cgroup v1 cpuacct, gcc, clang, bpftool, libbpf-dev, libelf-dev, libzstd-dev, and the peers (apt: sysstat atop
# procps pcp prometheus-node-exporter smem curl). REFERENCE is the directory with sample_cost.sh and the C sources.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
reference=${REFERENCE:-$here/../shared/bench}
if [ ! -e "$reference/sample_cost.sh" ]; then
    echo "error: no sample_cost.sh in $reference" >&2
    echo "help: REFERENCE=DIR bench/recorder_cost.sh" >&2
    exit 3
fi
[ $# -gt 0 ] || set -- 20 500 2000
target=${CARGO_TARGET_DIR:-$here/target}
(cd "$here" && cargo build --release --quiet --locked --package memtide)
memtide=$target/release/memtide

build=$target/bench-reference
mkdir -p "$build"
cd "$build"
bpftool btf dump file /sys/kernel/btf/vmlinux format c >vmlinux.h
clang -O2 -g -target bpf -D__TARGET_ARCH_x86 -I. -c "$reference/taskiter.bpf.c" -o taskiter.o
gcc -O2 -o recorder_lb "$reference/recorder_lb.c" -lbpf -lelf -lz -lzstd
export LBLOOP=$build/recorder_lb TASKITER_OBJ=$build/taskiter.o

# The peers' own table first, then memtide's rows against the minimal recorder that reads the same.
gate() { # row of memtide, reference row, file, what
    awk -v ours="$1" -v lower="$2" -v what="$4" '
        $1 == ours { a = $2 } $1 == lower { b = $2 }
        END { if (a && b) printf "%-28s %7.3f ms  %s %7.3f ms  %5.2f x\n", what, a, lower, b, a / b }' "$3"
}
for n; do
    for tasks in bpf proc; do
        table=$build/cost.$n.$tasks
        MEMTIDE="$memtide record --to %D --every 1s --no-cgroups --processes 1s --tasks $tasks" \
            MEMTIDE_HOST="$memtide record --to %D --every 1s --no-cgroups --no-processes" \
            bash "$reference/sample_cost.sh" "$n" "${WINDOWS:-5}" "${SECONDS_EACH:-8}" | tee "$table"
        gate memtide "$([ $tasks = bpf ] && echo lb_bpf || echo lb_stat)" "$table" "N=$n, $tasks"
        gate memtide_host lb_host "$table" "N=$n, host only"
        gate memtide_host sadc_XALL "$table" "N=$n, host only"
        gate memtide atop_w "$table" "N=$n, $tasks"
        gate memtide below "$table" "N=$n, $tasks"
    done
done
