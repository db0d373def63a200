#!/bin/sh
# Stops and disables the services when the package is removed, and not when it is upgraded.
# Arguments: deb "remove" or "upgrade"; rpm the number of versions that remain.
set -e
[ -d /run/systemd/system ] || exit 0
case "$1" in
remove | 0)
	systemctl --no-reload disable --now \
		tracing-all-in-one.service tracing-agent.service tracing-collector.service \
		tracing-ingester.service tracing-query.service || true
	;;
esac
