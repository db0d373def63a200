package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// graceTime is the time for a check to return after its context has ended.
const graceTime = time.Second

// run runs the checks that are not skipped, one after another, so that they do not disturb the
// measurements of each other.
func (x *examination) run(ctx context.Context, all []check, skip []string) Report {
	x.detect(ctx)
	r := Report{Version: x.build.Version, Running: x.process.running, Hangs: x.process.hangs != ""}
	for _, c := range all {
		var findings []Finding
		if slices.Contains(skip, c.name) {
			findings = []Finding{newFinding("", Skipped, "left out with --skip")}
		} else {
			findings = x.runOne(ctx, c)
		}
		result := newResult(c.name, findings)
		r.Checks = append(r.Checks, result)
		r.Verdict = max(r.Verdict, result.Verdict)
	}
	return r
}

// runOne runs a check within the time limit. A check that does not return, for example because the
// disk does not answer, is left behind.
func (x *examination) runOne(ctx context.Context, c check) []Finding {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	done := make(chan []Finding, 1)
	go func() { done <- c.run(ctx, x) }()
	select {
	case findings := <-done:
		return findings
	case <-ctx.Done():
	}
	grace := time.NewTimer(graceTime)
	defer grace.Stop()
	select {
	case findings := <-done:
		return findings
	case <-grace.C:
		return []Finding{newFinding("", Problem, "no result within %s", x.timeout).
			advise("look for a disk, a name server or a host that does not answer; run with a longer --timeout")}
	}
}

// absence says why a check that needs the process is left out.
func (p process) absence() string {
	if p.hangs != "" {
		return "process does not answer"
	}
	return "process is not running"
}

// hangFinding is the one finding about a process that does not answer.
func (p process) hangFinding() Finding {
	f := newFinding("", Problem, "%s", p.hangs)
	if p.pid == 0 {
		return f.advise("look at its log, and at the load of the host; restart it")
	}
	return f.advise("look at its log, and at the load of the host; \"kill -CONT %d\" continues a stopped process; "+
		"\"kill -QUIT %d\" ends it and writes what it was doing to its log", p.pid, p.pid)
}

// String describes the process for findings.
func (p process) String() string {
	if p.pid > 0 {
		return fmt.Sprintf("process %d", p.pid)
	}
	return "running process"
}
