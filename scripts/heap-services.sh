#!/bin/sh
# Starts one real program with a heap to be read from outside: its files are in a private temporary directory, it listens
# on sockets there if at all, and it ends with this script: at the end of stdin, or on SIGTERM.
# Usage: scripts/heap-services.sh NAME [--load]        such as MALLOC_ARENA_MAX=2 scripts/heap-services.sh ruby-jobs
#        ruby-jobs     25 threads with JSON, 16 arenas on 2 CPUs; LD_PRELOAD=libjemalloc.so.2 replaces malloc
#        mariadb       after 8 clients have sorted: free memory in the tops of thread arenas
#        redis         50 MB by jemalloc       python   300,000 lists by pymalloc
#        go, jvm, node 50 MB each on heaps of their own
# Prints `ready NAME PID` when the heap is built; with --load it goes on changing.
set -eu
name=${1:-} load=${2:-}
files=$(cd "$(dirname "$0")" && pwd)/heap-services
case $load in '' | --load) ;; *) echo "error: \`$load\`: only --load" >&2; exit 3 ;; esac

need() { # COMMAND PACKAGES; none of these packages has a service that its installation would start
    command -v "$1" >/dev/null 2>&1 && return
    shift
    if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" != 0 ]; then
        echo "error: missing: $*" >&2
        exit 3
    fi
    echo "installing: $*" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -yqq --no-install-recommends "$@" >/dev/null
}

exec 3<&0
dir=$(mktemp -d "${TMPDIR:-/tmp}/memtide-heap.XXXXXX")
pid='' reader='' clients=''
stop() {
    for each in $reader $clients $pid; do kill "$each" 2>/dev/null || true; done
    [ -z "$pid" ] || wait "$pid" 2>/dev/null || true
    rm -rf "$dir"
}
trap stop EXIT
trap 'exit 0' HUP INT PIPE TERM

start() { # the service; its output is in the directory
    "$@" >"$dir/out" 2>&1 </dev/null 3<&- &
    pid=$!
}
until_works() { # COMMAND...: for at most a minute, while the service lives
    tries=600
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        if [ "$tries" = 0 ] || ! kill -0 "$pid" 2>/dev/null; then
            echo "error: $name did not start:" >&2
            tail -n 5 "$dir/out" >&2
            exit 1
        fi
        sleep 0.1
    done
}
until_ready() { until_works grep -q '^ready' "$dir/out"; }

# shellcheck disable=SC2120 # options, besides a script on stdin
sql() { mariadb --no-defaults --user=root --socket="$dir/socket" "$@"; }
sort_with_8_clients() {
    clients=
    for _ in 1 2 3 4 5 6 7 8; do
        sql <"$files/sort.sql" >/dev/null &
        clients="$clients $!"
    done
    # shellcheck disable=SC2086 # a list
    wait $clients
    clients=
}
start_mariadb() {
    need mariadbd mariadb-server-core
    need mariadb mariadb-client-core
    mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$dir/data" --auth-root-authentication-method=normal \
        --skip-test-db >"$dir/out" 2>&1
    start mariadbd --no-defaults --user="$(id -un)" --datadir="$dir/data" --socket="$dir/socket" --skip-networking \
        --innodb-buffer-pool-size=32M --thread-cache-size=16
    until_works sql --execute='SELECT 1'
    sql <"$files/rows.sql"
    sort_with_8_clients
}
start_redis() {
    need redis-cli redis-tools
    # The server is the program of redis-tools under another name.
    ln -s "$(command -v redis-server || command -v redis-check-rdb)" "$dir/redis-server"
    start "$dir/redis-server" --port 0 --unixsocket "$dir/socket" --dir "$dir" --save ''
    until_works redis-cli -s "$dir/socket" ping
    redis-cli -s "$dir/socket" eval \
        'for i = 1, 250000 do redis.call("set", "key:" .. i, string.rep("x", 50 + i % 100)) end' 0 >/dev/null
}

case $name in
ruby-jobs)
    need ruby ruby
    start ruby "$files/jobs.rb" ${load:+"$load"}
    until_ready ;;
mariadb) start_mariadb ;;
redis) start_redis ;;
python)
    need python3 python3
    start python3 "$files/lists.py" ${load:+"$load"}
    until_ready ;;
go)
    need go golang-go
    GO111MODULE=off go build -o "$dir/hold" "$files/hold.go"
    start "$dir/hold" ${load:+"$load"}
    until_ready ;;
jvm)
    need javac default-jdk-headless
    javac -d "$dir" "$files/Hold.java"
    start java -Xmx96m -cp "$dir" Hold ${load:+"$load"}
    until_ready ;;
node)
    need node nodejs
    start node "$files/hold.js" ${load:+"$load"}
    until_ready ;;
*) sed -n '4,9s/^# //p' "$0" >&2; exit 3 ;;
esac

echo "ready $name $pid"
echo "to stop: end of input (Ctrl-D), or kill $$"
cat <&3 >/dev/null &
reader=$!
while [ -n "$load" ] && kill -0 "$reader" 2>/dev/null; do
    case $name in
    mariadb) sort_with_8_clients ;;
    redis) redis-cli -s "$dir/socket" eval \
        'for i = 1, 25000 do redis.call("set", "key:" .. math.random(250000), string.rep("y", math.random(200))) end' 0 >/dev/null ;;
    *) break ;;
    esac
done
wait "$reader" || true
reader=''
