package query_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestServicePerformanceOfSampledTraces stores a share of the traces. The rates count all traces
// within five standard deviations, and are the same after a restart, whether the spans are in
// segments or in the write-ahead log.
func TestServicePerformanceOfSampledTraces(t *testing.T) {
	const traces, parts, minutes = 40_000, 8, 3
	for _, percentage := range []float64{25, 30} { // a stored trace counts as 4, or as 3 or 4
		t.Run(fmt.Sprint(percentage), func(t *testing.T) {
			t.Parallel()
			settings := []string{"service::data_dir=" + t.TempDir(), "exporters::disk::memtable::max_spans=4000",
				fmt.Sprintf("processors::probabilistic_sampler={sampling_percentage: %v}", percentage),
				"service::pipelines::traces::processors=[probabilistic_sampler, batch]"}
			p := inprocess.Start(t, settings...)
			began := time.Now().Truncate(time.Minute).Add(-(minutes + 1) * time.Minute)
			r := rand.New(rand.NewPCG(1, 2))
			for range parts {
				td := ptrace.NewTraces()
				rs := td.ResourceSpans().AppendEmpty()
				rs.Resource().Attributes().PutStr("service.name", "cart")
				spans := rs.ScopeSpans().AppendEmpty().Spans()
				for i := range traces / parts {
					s := spans.AppendEmpty()
					s.SetTraceID(randomTraceID(r))
					s.SetSpanID(pcommon.SpanID{1, byte(i)})
					s.SetName("GET /")
					s.SetKind(ptrace.SpanKindServer)
					s.SetStartTimestamp(pcommon.NewTimestampFromTime(began.Add(time.Duration(i%(60*minutes)) * time.Second)))
					s.SetEndTimestamp(s.StartTimestamp() + 1e6)
				}
				body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
				if err != nil {
					t.Fatal(err)
				}
				if status, answer := p.PostOTLP("application/x-protobuf", string(body)); status != http.StatusOK {
					t.Fatalf("%d %s", status, answer)
				}
			}
			calls := callsOfCart(p)
			share := percentage / 100
			if off := 5 * math.Sqrt(traces*(1-share)/share); math.Abs(calls-traces) > off || calls == traces {
				t.Errorf("%v calls, want %d within %v", calls, traces, off)
			}
			if err := p.Stop(); err != nil {
				t.Fatal(err)
			}
			if again := callsOfCart(inprocess.Start(t, settings...)); math.Abs(again-calls) > 1e-6 {
				t.Errorf("%v calls after a restart, %v before", again, calls)
			}
		})
	}
}

func randomTraceID(r *rand.Rand) (id pcommon.TraceID) {
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	return id
}

// callsOfCart returns the number of calls of the service according to its rates.
func callsOfCart(p *inprocess.Program) (calls float64) {
	p.T.Helper()
	params := url.Values{"service": {"cart"}, "step": {"60000"}, "ratePer": {"60000"}, "lookback": {"600000"}}
	for _, perSecond := range rates(p, "calls", params) {
		calls += 60 * perSecond
	}
	return calls
}
