package delivery_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/harness"
)

// The store of TestDamagedStore has this number of traces, each with this number of spans. The
// first one is deleted.
const storeTraces, spansPerStoredTrace = 60, 40

// TestDamagedStore damages one file of the store of a killed program: flips bits, truncates it, or
// overwrites a part. The program starts every time. Each trace is found by its id, or the answer,
// the log or the status say what is damaged. No answer is a server error.
func TestDamagedStore(t *testing.T) {
	rounds, seed := soak.Rounds(t, 50, 4), soak.Seed(t)
	left := leaveStore(t)
	var files []string
	err := filepath.WalkDir(left, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "LOCK" && !strings.HasPrefix(d.Name(), "spare") && !strings.Contains(name, "queue") {
			files = append(files, strings.TrimPrefix(name, left))
		}
		return err
	})
	if err != nil || len(files) < 6 {
		t.Fatalf("files %v, %v", files, err)
	}
	for round := range rounds {
		rnd := rand.New(rand.NewPCG(seed, uint64(round)))
		name := files[rnd.IntN(len(files))]
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(left)); err != nil {
			t.Fatal(err)
		}
		what := damageFile(t, rnd, filepath.Join(dir, name))
		p := runDamagedStore(t, dir)
		found, silent := readStore(t, p)
		reports := len(problems(p))
		t.Logf("round %d: %s, %s: %d traces found, %d reports in the log", round, name, what, found, reports)
		if found != storeTraces-1 {
			awaitDegraded(t, p)
		}
		if silent > 0 && (reports == 0 || strings.HasSuffix(name, ".seg")) {
			t.Errorf("%s=%d, round %d: %s, %s: %d traces are lost without a report", soak.SeedVariable, seed, round, name, what, silent)
		}
		p.Kill()
		if t.Failed() {
			return
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func runDamagedStore(t *testing.T, dir string, more ...string) *harness.Process {
	t.Helper()
	return harness.RunAllInOne(t, dir, append(more, "exporters::disk::reserve=0", "exporters::disk::allow_delete=true",
		"exporters::disk::memtable::max_spans=1000")...)
}

func traceName(i int) string { return fmt.Sprintf("%032x", i+1) }

// leaveStore runs a program that stores traces in two segments and a log, deletes one, and is
// killed. It returns the data directory.
func leaveStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	p := runDamagedStore(t, dir)
	for i := range storeTraces {
		p.PostJSON(storedTrace(i))
	}
	harness.Poll(t, "two segments", func() bool {
		return harness.Metrics(t, p.AdminURL())[`tracing_disk_segments{component="disk",kind="exporter"}`] == 2
	})
	code, _, stderr := harness.RunCommand(t, "delete", "--yes", "--admin", p.AdminURL(), "--trace", traceName(0))
	if code != 0 {
		t.Fatal(stderr)
	}
	p.Kill()
	return dir
}

// storedTrace returns an OTLP request with a trace.
func storedTrace(i int) string {
	spans := make([]string, spansPerStoredTrace)
	now := time.Now().UnixNano()
	for j := range spans {
		spans[j] = fmt.Sprintf(`{"traceId":"%s","spanId":"%016x","name":"pay %d","startTimeUnixNano":"%d","endTimeUnixNano":"%d",
			"attributes":[{"key":"order","value":{"stringValue":"%x"}}]}`, traceName(i), j+1, i, now, now+int64(j), i*7919+j*104729)
	}
	return `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},
		"scopeSpans":[{"spans":[` + strings.Join(spans, ",") + `]}]}]}`
}

// damageFile changes a file in a random way.
func damageFile(t *testing.T, rnd *rand.Rand, name string) (what string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	used := len(strings.TrimRight(string(b), "\x00")) // the rest is preallocated
	at := rnd.IntN(used)
	switch rnd.IntN(4) {
	case 0:
		b[at] ^= 1 << rnd.IntN(8)
		what = fmt.Sprintf("bit flipped in byte %d", at)
	case 1:
		b = b[:at]
		what = fmt.Sprintf("cut to %d bytes", at)
	case 2:
		b = nil
		what = "cut to nothing"
	case 3:
		clear(b[at:min(used, at+512)])
		what = fmt.Sprintf("zeros from byte %d", at)
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return what
}

// readStore requests every trace by id and all of them by a search. It returns the number of traces
// found, and of those that are missing without a message in the answer.
func readStore(t *testing.T, p *harness.Process) (found, silent int) {
	t.Helper()
	all := 0
	for i := range storeTraces {
		status, body := harness.Fetch(t, p.QueryURL()+"/api/traces/"+traceName(i))
		spans := strings.Count(string(body), fmt.Sprintf(`"operationName":"pay %d"`, i))
		all += spans
		switch {
		case status == http.StatusOK && spans > 0:
			found++
			if i == 0 || spans < spansPerStoredTrace && !strings.Contains(string(body), "result is incomplete") {
				silent++ // the deletion is lost, or spans are
			}
		case status == http.StatusNotFound && strings.Contains(string(body), "the part of the store that can be read"):
		case status == http.StatusNotFound:
			if i > 0 {
				silent++
			}
		default:
			t.Errorf("trace %d: status %d: %.300s", i, status, body)
		}
	}
	for _, line := range p.LogLines() {
		if strings.Contains(fmt.Sprint(line), "panic") {
			t.Errorf("panic: %v", line)
		}
	}
	status, body := harness.Fetch(t, p.QueryURL()+"/api/traces?service=shop&limit=1000&start=1")
	if n := strings.Count(string(body), `"operationName":"pay `); status != http.StatusOK || n != all {
		t.Errorf("search: status %d, %d spans; %d are found by id", status, n, all)
	}
	if status, body := harness.Fetch(t, p.AdminURL()+"/readyz"); status != http.StatusOK {
		t.Errorf("not ready: %d %s", status, body)
	}
	return found, silent
}

// awaitDegraded waits until the status shows the store as degraded: the store checks once a second.
func awaitDegraded(t *testing.T, p *harness.Process) {
	t.Helper()
	harness.Poll(t, "degraded store", func() bool {
		_, body := harness.Fetch(t, p.AdminURL()+"/status")
		return strings.Contains(string(body), `"degraded"`)
	})
}

// problems returns the warnings and errors that the store has logged.
func problems(p *harness.Process) (list []map[string]any) {
	for _, line := range p.LogLines() {
		if level := line["level"]; line["component"] == "disk" && (level == "error" || level == "warn") {
			list = append(list, line)
		}
	}
	return list
}
