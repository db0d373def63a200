package query_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

// The largest trace that is shown, of 200,000 spans, takes at most three times its size and 64 MiB of a process that runs as it is shipped.
func TestMemoryOfTheLargestTraceInAProcess(t *testing.T) {
	harness.SkipShort(t)
	if runtime.GOOS != "linux" { // the others do not have /proc
		t.Skip("reads /proc")
	}
	const spans = 199_900 // and a few more: the last of what makes the trace is whole. max_trace_size is 200,000
	p := harness.Run(t, harness.FreePortArgs("all-in-one", filepath.Join(t.TempDir(), "data"), "receivers::otlp::protocols::grpc", "receivers::otlp::protocols::http",
		"receivers::native::protocols::grpc", "receivers::native::protocols::http", "receivers::thriftudp::compact", "receivers::thriftudp::binary",
		"receivers::thriftudp::zipkin", "extensions::sampling::http", "extensions::query::http", "extensions::query::grpc", "extensions::admin")...)
	data := bench.New(5, time.Now().Add(-time.Hour))
	requests := slices.Collect(data.Hostile(bench.OneTrace, spans, 1000))
	size := 0
	for _, r := range requests {
		size += len(r.Body)
	}
	r, err := load.Run(t.Context(), load.Options{Target: p.Address("otlp", "protocols.grpc"), Retry: time.Minute}, slices.Values(requests))
	if err != nil || r.Acked < spans || r.Acked > 200_000 {
		t.Fatalf("%+v, %v", r, err)
	}
	id := data.Trace(0)[0].TraceID
	before := p.ResetPeakMemory()
	for _, path := range []string{"/api/traces/", "/api/v3/traces/"} {
		length, warned := download(t, fmt.Sprint("http://", p.Address("query", "http"), path, id))
		took := p.PeakMemory() - before
		if limit := (3*size + 64<<20) >> 20; took > limit || length < size || warned {
			t.Errorf("%s: %d MiB for a trace of %d MiB, at most %d MiB; cut: %t", path, took, size>>20, limit, warned)
		}
		t.Logf("%s: %d MiB beside %d for a trace of %d MiB, an answer of %d MiB", path, took, before, size>>20, length>>20)
	}
}

// download returns how long an answer is, and whether it says that a trace was cut.
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
