# Installs, upgrades and erases the rpm. The machine has no database of RPM with the packages that
# the package needs, so dependencies are not checked.
. /shared/common.sh
rpm --install --nodeps /shared/tracing-1.2.3-1.*.rpm
check_installed
check_units
check_reload
check_failures
check_sandbox
pid=$(main_pid)
rpm --upgrade --nodeps /shared/tracing-1.3.0-1.*.rpm
check_upgraded "$pid"
[ "$(rpm --query --queryformat '%{VERSION}' tracing)" = 1.3.0 ]
rpm --erase tracing
check_removed
grep 100h /etc/tracing/all-in-one.yaml.rpmsave
