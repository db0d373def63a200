#!/bin/sh
# Forgets the units, and on purge deletes the data. The user stays, because files elsewhere may belong to it.
# Arguments: deb "remove", "purge" or others; rpm the number of versions that remain, which never purges.
set -e
if [ "$1" = purge ]; then
	rm -rf /var/lib/tracing /etc/tracing
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
