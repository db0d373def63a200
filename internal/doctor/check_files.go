package doctor

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Limits on open files. The program raises its soft limit to the hard one when it starts.
const (
	fewFiles  = 1024 // below, a store with some traffic cannot open its segments
	baseFiles = 1000 // segments, logs and outgoing connections, in addition to connections of clients
)

// checkFiles compares the limit on open files with the connections that listeners accept.
func checkFiles(_ context.Context, x *examination) []Finding {
	limit, of, err := x.fileLimit()
	if err != nil {
		return []Finding{newFinding("", Skipped, "cannot read the limit on open files: %v", err)}
	}
	needed := baseFiles
	for i := range x.listeners {
		needed += x.listeners[i].clients
	}
	text := fmt.Sprintf("hard limit of %s is %d; max_connections of all listeners and files of stores need up to %d", of, limit, needed)
	const advice = "set LimitNOFILE of the systemd unit, ulimits of the container, or the hard limit in /etc/security/limits.conf " +
		"to at least %d, or lower max_connections"
	switch {
	case limit < fewFiles:
		return []Finding{newFinding("", Problem, "%s", text).advise(advice, needed)}
	case limit < uint64(needed):
		return []Finding{newFinding("", Warning, "%s", text).advise(advice, needed)}
	}
	return []Finding{newFinding("", OK, "%s", text)}
}

// fileLimit returns the hard limit of the running process if it can be read, or else that of this
// command.
func (x *examination) fileLimit() (limit uint64, of string, err error) {
	if x.process.pid > 0 {
		if limit, err := limitOfProcess(x.process.pid); err == nil {
			return limit, x.process.String(), nil
		}
	}
	limit, err = ownFileLimit()
	return limit, "this shell", err
}

// limitOfProcess reads the hard limit from /proc.
func limitOfProcess(pid int) (uint64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(content)) {
		rest, ok := strings.CutPrefix(line, "Max open files")
		if fields := strings.Fields(rest); ok && len(fields) >= 2 {
			return strconv.ParseUint(fields[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("no limit on open files in /proc/%d/limits", pid)
}
