# Installs, upgrades, removes and purges the deb.
. /shared/common.sh
dpkg -i /shared/tracing_1.2.3_*.deb
check_installed
check_units
check_reload
check_failures
check_sandbox
pid=$(main_pid)
dpkg -i /shared/tracing_1.3.0_*.deb
check_upgraded "$pid"
[ "$(dpkg-query --show --showformat '${Version}' tracing)" = 1.3.0 ]
dpkg --remove tracing
check_removed
grep 100h /etc/tracing/all-in-one.yaml
dpkg --purge tracing
[ ! -e /var/lib/tracing ]
[ ! -e /etc/tracing ]
[ ! -e /etc/default/tracing-agent ]
