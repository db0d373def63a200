# Checks that deb.sh and rpm.sh share. The commands are those of docs/deploy/linux.md.

# eventually runs a command until it succeeds.
eventually() { { set +x; } 2>/dev/null; until "$@" >/dev/null 2>&1; do sleep 0.1; done; set -x; }

# fails runs a command that must fail.
fails() { if "$@"; then return 1; fi; }

# has_status reports whether a service has told systemd a status; it does so before or soon after it is ready.
has_status() { systemctl status "tracing-$1" | grep 'Status: "'; }

# logged reports whether the journal has a line; lines arrive soon after they are written.
logged() { journalctl --no-pager | grep "$1"; }

main_pid() { systemctl show --value -p MainPID tracing-all-in-one; }
restarts() { systemctl show --value -p NRestarts tracing-all-in-one; }
restarted() { [ "$(restarts)" -ge "$1" ] && systemctl is-active tracing-all-in-one; }
traces() { curl -sf -m 5 'localhost:16686/api/traces/5b8efff798038103d269b633813fc60c' >/dev/null; }

reloaded() { curl -s -m 5 localhost:14269/metrics | grep '^tracing_config_reloads_total{result="applied"} 1$'; }

# send stores a span.
send() {
	curl -sf localhost:4318/v1/traces -H 'Content-Type: application/json' -d '{"resourceSpans": [{"resource": {"attributes":
		[{"key": "service.name", "value": {"stringValue": "checkout"}}]}, "scopeSpans": [{"spans": [{
		"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "pay", "kind": 2,
		"startTimeUnixNano": "'"$(date +%s)"'000000000", "endTimeUnixNano": "'"$(date +%s)"'250000000"}]}]}]}'
}

# check_installed checks a new installation: nothing runs, and the units have no errors and are rated at most 2.0.
check_installed() {
	[ -z "$(systemd-analyze verify /usr/lib/systemd/system/tracing-*.service 2>&1)" ]
	systemd-analyze security --no-pager --offline=true --threshold=20 /usr/lib/systemd/system/tracing-*.service >/dev/null
	fails systemctl is-active 'tracing-*'
	fails systemctl is-enabled tracing-all-in-one
	[ "$(stat -c '%U:%G %a' /etc/tracing/all-in-one.yaml /etc/default/tracing-agent | sort -u)" = 'root:tracing 640' ]
	[ ! -e /var/lib/tracing ]
}

# check_units starts and stops every unit. The collector of the agent and of the query service is
# missing.
check_units() {
	for preset in agent query collector all-in-one; do
		started=$(date +%s%N)
		systemctl start tracing-$preset
		echo "TIME tracing-$preset ready after $((($(date +%s%N) - started) / 1000000)) ms"
		eventually has_status $preset
		[ "$(systemctl show --value -p User tracing-$preset)" = tracing ]
		[ "$(stat -c '%U %a' /var/lib/tracing/$preset)" = 'tracing 750' ]
		systemctl stop tracing-$preset
		[ "$(systemctl show --value -p Result tracing-$preset)" = success ]
	done
}

# check_reload reloads valid and invalid configurations.
check_reload() {
	systemctl enable --now tracing-all-in-one
	user_healthcheck
	pid=$(main_pid)
	printf 'exporters: {disk: {retention: {time: 100h}}}\n' >/etc/tracing/all-in-one.yaml
	systemctl reload tracing-all-in-one
	eventually reloaded
	printf 'exporters: {disk: {retention: {tim: 100h}}}\n' >/etc/tracing/all-in-one.yaml
	fails systemctl reload tracing-all-in-one
	eventually logged 'unknown key "tim"'
	systemctl is-active tracing-all-in-one
	[ "$pid" = "$(main_pid)" ]
	printf 'exporters: {disk: {retention: {time: 100h}}}\n' >/etc/tracing/all-in-one.yaml
}

user_healthcheck() { setpriv --reuid tracing --regid tracing --clear-groups tracing healthcheck all-in-one; }

# check_failures kills the process, and stops it so that only the watchdog notices.
check_failures() {
	send
	traces
	mkdir -p /etc/systemd/system/tracing-all-in-one.service.d
	printf '[Service]\nRestartSec=100ms\nWatchdogSec=3s\nTimeoutAbortSec=1s\n' >/etc/systemd/system/tracing-all-in-one.service.d/test.conf
	systemctl daemon-reload
	systemctl restart tracing-all-in-one
	kill -KILL "$(main_pid)"
	eventually restarted 1
	eventually traces
	kill -STOP "$(main_pid)"
	eventually restarted 2
	eventually traces
	eventually logged 'tracing-all-in-one.service: Watchdog timeout'
	rm /etc/systemd/system/tracing-all-in-one.service.d/test.conf
	systemctl daemon-reload
	systemctl restart tracing-all-in-one
}

# check_sandbox checks what the process may not do.
check_sandbox() {
	grep '^NoNewPrivs:.*1$' "/proc/$(main_pid)/status"
	grep '^CapBnd:.*0000000000000000$' "/proc/$(main_pid)/status"
	grep '^Seccomp:.*2$' "/proc/$(main_pid)/status"
	nsenter --target "$(main_pid)" --mount sh -c '! touch /usr/x /etc/tracing/x /home/x 2>/dev/null'
}

# check_upgraded checks what an upgrade must keep, given the process id before it.
check_upgraded() {
	[ "$1" != "$(main_pid)" ]
	systemctl is-active tracing-all-in-one
	systemctl is-enabled tracing-all-in-one
	fails systemctl is-active tracing-agent
	grep 100h /etc/tracing/all-in-one.yaml
	eventually traces
}

# check_removed checks what stays when the package is removed.
check_removed() {
	[ ! -e /usr/bin/tracing ]
	fails systemctl is-active tracing-all-in-one
	[ ! -e /etc/systemd/system/multi-user.target.wants/tracing-all-in-one.service ]
	[ -e /var/lib/tracing/all-in-one/disk ]
}
