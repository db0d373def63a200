package doctor

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
)

// Clock differences to another host above which a finding is a warning or a problem.
const (
	skewWarning = 2 * time.Second
	skewProblem = time.Minute
)

// checkClock reads whether the kernel considers the clock synchronized, and compares it with the
// clocks of hosts that respond over HTTP.
func checkClock(ctx context.Context, x *examination) []Finding {
	found := []Finding{synchronization()}
	urls := map[string]bool{}
	for i := range x.hops {
		if hop := &x.hops[i]; hop.http != nil && !urls[hop.url] {
			urls[hop.url] = true
			found = append(found, x.skew(ctx, hop.url))
		}
	}
	if x.query != "" && !urls[x.query] && x.query != queryURL(queryListener(x.listeners)) {
		found = append(found, x.skew(ctx, x.query))
	}
	return found
}

// skew compares the clock with the Date header of a response, which has whole seconds.
func (x *examination) skew(ctx context.Context, url string) Finding {
	subject := pipeline.MaskURLs(url)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return newFinding(subject, Skipped, "not a URL: %s", pipeline.MaskURLs(err.Error()))
	}
	before := x.env.Now()
	resp, err := x.remote.RoundTrip(req)
	after := x.env.Now()
	if err != nil {
		return newFinding(subject, Skipped, "no response: %v", err)
	}
	resp.Body.Close() //nolint:errcheck // only the headers matter
	there, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return newFinding(subject, Skipped, "response has no Date header")
	}
	return judgeSkew(subject, there, before, after)
}

// judgeSkew compares a time in whole seconds from another host with the local times before and
// after the request.
func judgeSkew(subject string, there, before, after time.Time) Finding {
	skew := time.Duration(0)
	if end := there.Add(time.Second); end.Before(before) {
		skew = before.Sub(end)
	} else if there.After(after) {
		skew = there.Sub(after)
	}
	switch {
	case skew > skewProblem:
		return newFinding(subject, Problem, "clocks differ by at least %s", roundTime(skew)).
			advise("synchronize both hosts with NTP; spans of different hosts are in the wrong order, and searches by time miss them")
	case skew > skewWarning:
		return newFinding(subject, Warning, "clocks differ by at least %s", roundTime(skew)).advise("synchronize both hosts with NTP")
	}
	return newFinding(subject, OK, "clocks agree to within a second")
}

// Limits on open files. The program raises its soft limit to the hard one when it starts.
const (
	fewFiles  = 1024 // with fewer, a store with some traffic cannot open its segments
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

// fileLimit returns the hard limit of the running process if it can be read, otherwise the limit of
// this command.
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

// checkMemory compares the sum of the memory limits in the configuration with the memory of the
// cgroup, GOMEMLIMIT and the machine.
func checkMemory(_ context.Context, x *examination) []Finding {
	built, err := app.New(x.config, app.Options{Log: io.Discard, Build: x.build})
	if err != nil {
		return []Finding{newFinding("", Problem, "configuration cannot be built: %v", err).advise("run \"tracing validate\"")}
	}
	n := built.MemoryNeeds()
	const advice = "raise the limit, or lower service::limits, memtables, caches and queues"
	text := fmt.Sprintf("limits of the configuration add up to %s", size(n.Needed))
	switch {
	case n.GOMEMLIMIT > n.Cgroup:
		return []Finding{newFinding("", Problem, "GOMEMLIMIT (%s) is above the limit of the cgroup (%s): the kernel kills the process first",
			size(n.GOMEMLIMIT), size(n.Cgroup)).advise("unset GOMEMLIMIT; the program adjusts itself to the cgroup")}
	case n.Needed > n.Available && n.GOMEMLIMIT > 0:
		return []Finding{newFinding("", Problem, "%s, GOMEMLIMIT allows %s", text, size(n.Available)).advise(advice)}
	case n.Needed > n.Available:
		return []Finding{newFinding("", Problem, "%s, the cgroup allows the program %s", text, size(n.Available)).advise(advice)}
	case n.Needed > n.Machine:
		return []Finding{newFinding("", Warning, "%s, the machine has %s", text, size(n.Machine)).advise(advice)}
	case n.Available == math.MaxInt64:
		return []Finding{newFinding("", OK, "%s, the machine has %s, and no cgroup limits it", text, size(n.Machine))}
	}
	return []Finding{newFinding("", OK, "%s, %s may be used", text, size(n.Available))}
}

// checkUDP compares the buffer sizes that UDP listeners request with the sizes that the kernel
// grants.
func checkUDP(_ context.Context, x *examination) []Finding {
	var found []Finding
	for i := range x.listeners {
		if l := &x.listeners[i]; l.network == "udp" && l.buffer > 0 {
			found = append(found, udpBuffer(l))
		}
	}
	if len(found) == 0 {
		found = append(found, newFinding("", Skipped, "no UDP listeners with socket_buffer in the configuration"))
	}
	return found
}

func udpBuffer(l *listener) Finding {
	granted, err := grantedBuffer(l.buffer)
	text := fmt.Sprintf("kernel grants %s of the %s in socket_buffer", size(int64(granted)), pipeline.ByteSize(l.buffer))
	switch {
	case err != nil:
		return newFinding(l.String(), Skipped, "cannot measure the buffer: %v", err)
	case granted < l.buffer:
		return newFinding(l.String(), Warning, "%s; bursts of datagrams are dropped earlier", text).
			advise("run \"sysctl -w net.core.rmem_max=%d\" on the host, and write it to /etc/sysctl.d", l.buffer)
	}
	return newFinding(l.String(), OK, "%s", text)
}
