package query_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

// TestMemoryOfLargestTrace checks the peak memory of a process for reading a trace of the maximum
// size, 200,000 spans: at most three times its size and 64 MiB.
func TestMemoryOfLargestTrace(t *testing.T) {
	harness.SkipIfShort(t)
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	const spans = 199_900 // and a few more, because the last part is not cut; max_trace_size is 200,000
	p := harness.RunAllInOne(t, t.TempDir())
	data := bench.New(5, time.Now().Add(-time.Hour))
	requests := slices.Collect(data.Hostile(bench.OneTrace, spans, 1000))
	size := 0
	for _, r := range requests {
		size += len(r.Body)
	}
	r, err := load.Run(t.Context(), load.Options{Target: p.OTLPGRPC(), Retry: time.Minute}, slices.Values(requests))
	if err != nil || r.Acked < spans || r.Acked > 200_000 {
		t.Fatalf("%+v, %v", r, err)
	}
	id := data.Trace(0)[0].TraceID
	before := p.WatchMemory()
	for _, path := range []string{"/api/traces/", "/api/v3/traces/"} {
		length, cut := download(t, fmt.Sprint("http://", p.Address("query", "http"), path, id))
		took := p.PeakMemory() - before
		if limit := (3*size + 64<<20) >> 20; took > limit || length < size || cut {
			t.Errorf("%s: %d MiB for a trace of %d MiB, at most %d MiB; cut: %t", path, took, size>>20, limit, cut)
		}
		t.Logf("%s: %d MiB beside %d for a trace of %d MiB, an answer of %d MiB", path, took, before, size>>20, length>>20)
	}
}

// download returns the length of a response in bytes, and whether it contains the warning about a
// cut trace.
func download(t *testing.T, url string) (length int, cut bool) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	part := make([]byte, 1<<20)
	for {
		n, err := io.ReadFull(res.Body, part)
		length += n
		cut = cut || bytes.Contains(part[:n], []byte("trace has more than"))
		if err == io.EOF || err == io.ErrUnexpectedEOF && n < len(part) {
			return length, cut
		}
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%d, %v after %d bytes", res.StatusCode, err, length)
		}
	}
}

// The deprecated key of the extension sets the memory of all queries, unless the key of the service
// does.
func TestDeprecatedKeyOfQueryMemory(t *testing.T) {
	const old, warning = "extensions::query::max_answer_memory=100MiB", "key max_answer_memory is deprecated; set service.limits.query_memory"
	for want, settings := range map[string][]string{"100MiB": {old}, "50MiB": {old, "service::limits::query_memory=50MiB"}} {
		p := harness.RunAllInOne(t, t.TempDir(), settings...)
		if got := p.Await("msg", "set soft memory limit")["query_memory"]; got != want {
			t.Errorf("%q: query memory of %v, want %s", settings, got, want)
		}
		p.Await("msg", warning)
		p.Kill()
	}
}
