#!/bin/bash
# Starts systemd as the first process of a machine: the files of this one, whose changes stay in
# memory, and processes, network and mounts of its own. systemd runs /shared/SCENARIO, which is
# SCENARIO in the folder SHARED, writes its output to SHARED/log, and stops the machine when the
# scenario ends. Exits with 77 if this machine does not allow that.
# usage: unshare --mount --pid --fork --net --ipc --uts --cgroup machine.sh SHARED SCENARIO
shared=$1 scenario=$2

prepare() {
	set -e
	mount --make-rprivate /
	ip link set lo up
	memory=/mnt
	mount -t tmpfs tmpfs "$memory"
	root=$memory/root
	mkdir "$memory/upper" "$memory/work" "$root"
	mount -t overlay overlay -o "lowerdir=/,upperdir=$memory/upper,workdir=$memory/work" "$root"
	mount -t proc proc "$root/proc"
	mount -t sysfs sysfs "$root/sys"
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
	for folder in dev run tmp; do mount -t tmpfs tmpfs "$root/$folder"; done
	for device in null zero full random urandom tty; do
		touch "$root/dev/$device"
		mount --bind "/dev/$device" "$root/dev/$device"
	done
	ln -s pts/ptmx "$root/dev/ptmx"
	mkdir "$root/shared" "$root/.old"
	mount --bind "$shared" "$root/shared"
	rm -rf "$root"/etc/systemd/system/*.wants # services of this machine
	cat >"$root/etc/systemd/system/scenario.service" <<-END
		[Unit]
		DefaultDependencies=no
		[Service]
		Type=oneshot
		ExecStart=-/bin/bash -c 'bash -eux "/shared/$scenario"; echo \$? >/shared/status'
		ExecStopPost=/bin/systemctl --force poweroff
		StandardOutput=append:/shared/log
		StandardError=inherit
	END
	cd "$root"
	pivot_root . .old
	umount -l /.old
}

prepare || exit 77
export container=other # systemd leaves the kernel's settings alone
exec /lib/systemd/systemd --system --unit=scenario.service --show-status=no
