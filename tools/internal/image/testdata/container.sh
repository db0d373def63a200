#!/bin/bash
# Runs a command, which enters the root folder ROOT with chroot, as container engines do: as process 1,
# with mounts and a network of its own. ROOT is read-only except for its folder data, which is VOLUME.
# usage: unshare --mount --pid --fork --kill-child --net bash container.sh ROOT VOLUME COMMAND...
set -e
root=$1 volume=$2
shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
mkdir -p "$root/proc"
mount -t proc proc "$root/proc"
mount --bind "$volume" "$root/data"
touch "$root/etc/hosts"
mount --bind /etc/hosts "$root/etc/hosts"
mount -o remount,bind,ro "$root"
ip link set lo up
exec "$@"
