#!/bin/sh
# Creates the user of the services before files of its group are unpacked.
set -e
getent group tracing >/dev/null || groupadd --system tracing
getent passwd tracing >/dev/null ||
	useradd --system --gid tracing --home-dir /var/lib/tracing --no-create-home --shell /usr/sbin/nologin \
		--comment "Tracing backend" tracing
