#!/bin/sh
# Loads the units. After an upgrade, restarts the services that run. Starts none after a first installation.
# Arguments: deb "configure" and the previous version, or nothing; rpm the number of installed versions.
set -e
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
case "$1" in
configure) previous=$2 ;;
1) previous= ;;
*) previous=yes ;;
esac
if [ -n "$previous" ]; then
	systemctl try-restart tracing-all-in-one.service tracing-agent.service tracing-collector.service \
		tracing-ingester.service tracing-query.service ||
		echo "tracing: a service does not start with this version; see journalctl -u 'tracing-*'" >&2
fi
