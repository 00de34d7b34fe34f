# Ends the processes of a run's cgroup and removes it once the program that made it is gone. Arguments: its directories, the
# freezer's first. Standard input ends with that program, which kills this guard where nothing is left to do.
trap '' HUP INT TERM
exec 2>/dev/null
while read -r _; do :; done

end_group() {
    [ -e "$1/freezer.state" ] && echo FROZEN >"$1/freezer.state"
    [ -e "$1/cgroup.kill" ] && echo 1 >"$1/cgroup.kill"
    while read -r pid; do
        # A process of another PID namespace is listed as 0, which would be this guard.
        [ "$pid" -gt 0 ] && kill -9 "$pid"
    done <"$1/cgroup.procs"
    for below in "$1"/*/; do
        [ -d "$below" ] && end_group "${below%/}"
    done
    [ -e "$1/freezer.state" ] && echo THAWED >"$1/freezer.state"
    rmdir "$1"
}

tries=0
while [ "$tries" -lt 100 ]; do
    is_left=
    for group; do
        [ -d "$group" ] || continue
        is_left=1
        end_group "$group"
    done
    [ -n "$is_left" ] || exit 0
    tries=$((tries + 1))
    sleep 0.05 || sleep 1
done
