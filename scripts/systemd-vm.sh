#!/bin/sh
# Boots a Debian with systemd, cgroup v2 and users that have slices of their own, in a virtual machine without a network.
# Usage: scripts/systemd-vm.sh DIR     DIR/main runs as root once it is up, with DIR at /job; what it prints is printed here,
#                                      and the machine ends with it
#        scripts/systemd-vm.sh         only makes the system, in ~/.cache/memtide/systemd
# Making it needs root (debootstrap), a minute, and 350 MB; it is made anew when this script changes. A machine starts from
# it and leaves it as it is. DEBIAN_SUITE is the release: this system's own, so that its programs run there, or trixie.
# MEMTIDE_VM_ACCEL=kvm runs it by KVM instead of emulation. The console of the last machine stays in the cache.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/sbin:/sbin
own=$(. /etc/os-release 2>/dev/null && [ "${ID:-}" = debian ] && echo "$VERSION_CODENAME" || echo trixie)
suite=${DEBIAN_SUITE:-$own}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/memtide/systemd
system=$cache/$suite
work=
qemu=
# shellcheck disable=SC2317 # called by the trap
clean() {
    [ -z "$qemu" ] || kill "$qemu" 2>/dev/null || true
    [ -z "$work" ] || rm -rf --one-file-system "$work"
}
trap clean EXIT
# On a signal dash would end without running the EXIT trap.
trap 'exit 130' INT TERM HUP
mkdir -p "$cache"

# The system, and the services of a test machine.
make_system() {
    [ "$(id -u)" = 0 ] || { echo "error: making the system needs root" >&2; exit 3; }
    work=$(mktemp -d "$cache/.make.XXXXXX")
    root=$work/root
    packages=systemd-sysv,dbus,dbus-user-session,libpam-systemd,passwd,fuse3,kmod,zstd,initramfs-tools,linux-image-cloud-amd64
    debootstrap --variant=minbase --include=$packages "$suite" "$root" "$("$here/debian-mirror.sh")" >"$cache/$suite.log" 2>&1 ||
        { tail -n 3 "$cache/$suite.log" >&2; exit 3; }
    mkdir "$root/job"
    echo vm >"$root/etc/hostname"
    echo "/dev/vda / ext4 defaults 0 0" >"$root/etc/fstab"
    cat >"$root/etc/systemd/system/job.service" <<'UNIT'
[Unit]
After=multi-user.target
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
Type=oneshot
ExecStartPre=mount -o ro /dev/vdb /job
ExecStart=/job/main
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS1
[Install]
WantedBy=graphical.target
UNIT
    chroot "$root" systemctl --quiet enable job.service
    chroot "$root" systemctl --quiet set-default graphical.target
    # They only take time.
    chroot "$root" systemctl --quiet mask systemd-timesyncd.service getty@tty1.service serial-getty@ttyS0.service \
        apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer
    cp "$root"/boot/vmlinuz-* "$work/vmlinuz"
    cp "$root"/boot/initrd.img-* "$work/initrd"
    rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/doc "$root"/usr/share/man \
        "$root"/usr/share/locale "$root"/usr/share/info
    mke2fs -q -F -t ext4 -m 0 -d "$root" "$work/root.ext4" 2G
    rm -rf --one-file-system "$root"
    cp "$here/systemd-vm.sh" "$work/made-by"
    rm -rf --one-file-system "$system"
    mv -T "$work" "$system"
    work=
    echo "made: $system" >&2
}

if ! command -v debootstrap >/dev/null 2>&1 || ! command -v qemu-system-x86_64 >/dev/null 2>&1; then
    (cd "$here/.." && scripts/setup.sh users) >&2
fi
cmp -s "$here/systemd-vm.sh" "$system/made-by" || make_system
[ $# -gt 0 ] || exit 0

case ${MEMTIDE_VM_ACCEL:-tcg} in
kvm) accel="-accel kvm -cpu host" ;;
*) accel="-accel tcg,thread=multi -cpu max" ;;
esac
work=$(mktemp -d "${TMPDIR:-/tmp}/memtide-vm.XXXXXX")
size=$(($(du -sm "$1" | cut -f 1) * 5 / 4 + 16))
mke2fs -q -F -t ext4 -m 0 -d "$1" "$work/job.ext4" "${size}M"
# The 8254 timer is not found on a loaded host; a panic ends the machine at once.
# shellcheck disable=SC2086 # a list
qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot -nic none $accel -m 1024 -smp 2 \
    -kernel "$system/vmlinuz" -initrd "$system/initrd" \
    -append "root=/dev/vda ro console=ttyS0 quiet psi=1 panic=-1 no_timer_check systemd.show_status=0" \
    -drive "file=$system/root.ext4,format=raw,if=none,id=root,snapshot=on" -device virtio-blk-pci,drive=root \
    -drive "file=$work/job.ext4,format=raw,if=none,id=job,read-only=on" -device virtio-blk-pci,drive=job \
    -serial "file:$cache/console" -serial stdio </dev/null &
qemu=$!
wait "$qemu"
qemu=
