package segment

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows/rowstest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// TestTraceBlocks compares the result for many traces with those for each trace.
func TestTraceBlocks(t *testing.T) {
	const traces = 5000 // several pages of the index
	rng := rand.New(rand.NewPCG(1, 2))
	in := rowstest.New()
	td := ptrace.NewTraces()
	list := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	ids := make([]otlpdata.TraceID, traces)
	for i := range ids {
		ids[i] = otlpdata.TraceID{byte(i), byte(i >> 8), 1}
		for range 1 + rng.IntN(2) {
			s := list.AppendEmpty()
			s.SetTraceID(pcommon.TraceID(ids[i]))
			s.SetSpanID(pcommon.SpanID{byte(list.Len())})
			s.SetStartTimestamp(pcommon.Timestamp(rng.IntN(1000)))
		}
	}
	in.Add(otlpdata.FromTraces(td, otlpdata.Meta{Tenant: "t"}))
	seg, fs := writeSample(t, &sample{in: inputOf(in)}, 5)
	for range 100 {
		some := make([]otlpdata.TraceID, rng.IntN(40))
		var want []int
		for i := range some {
			some[i] = ids[rng.IntN(traces)]
			found, err := seg.findTrace(nil, source.TraceHash("t", some[i]))
			if err != nil || len(found) == 0 {
				t.Fatal(found, err)
			}
			for _, b := range found {
				want = append(want, int(b))
			}
		}
		slices.Sort(want)
		got, err := seg.TraceBlocks("t", some)
		if want = slices.Compact(want); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%d traces: %v, %v, want %v", len(some), got, err, want)
		}
	}
	if got, err := seg.TraceBlocks("other", ids); err != nil || len(got) > 1 {
		t.Errorf("another tenant has %d blocks, %v", len(got), err)
	}

	data, err := vfs.ReadFile(fs, "s", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	data[seg.dir[kindIndex].offset+10] ^= 1
	if err := vfs.WriteFileAtomic(fs, "rotten", data); err != nil {
		t.Fatal(err)
	}
	if got, err := openTest(t, fs, "rotten").TraceBlocks("t", ids); !errors.Is(err, errChecksum) {
		t.Errorf("damaged index: %d blocks, %v", len(got), err)
	}
}
