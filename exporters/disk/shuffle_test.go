package disk

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// TestShuffled checks rates, errors, durations and calls for windows of any length when spans
// arrive in any order: parents after children, in other requests or segments, before a restart or a
// merge.
func TestShuffled(t *testing.T) {
	soak.SkipIfRaced(t)
	seed := soak.Seed(t)
	s := &shuffled{t: t, rng: rand.New(rand.NewPCG(seed, 0)), setup: mergeSetup(vfstest.NewMem())}
	s.setup.config.Memtable.MaxSpans = 250
	s.make(150)
	s.store = s.setup.start(t)
	requests := s.requests()
	half := len(requests) / 2
	s.send(requests[:half])
	s.check("half sent")
	stopStore(t, s.store)
	s.store = s.setup.start(t)
	s.check("restarted")
	merges := mergeAll(t, s.store)
	s.check("merged")
	s.send(requests[half:])
	s.check("all sent")
	s.setup.fs = s.setup.fs.(*vfstest.Mem).Kill()
	s.store.Stop(t.Context()) //nolint:errcheck // its disk has crashed
	s.store = s.setup.start(t)
	s.check("recovered")
	flushStore(t, s.store)
	s.check("flushed")
	if merges += mergeAll(t, s.store); merges == 0 {
		t.Error("no segments were merged")
	}
	s.check("merged again")
	stopStore(t, s.store)
}

// shuffled holds spans in random order and the store that receives them.
type shuffled struct {
	t     *testing.T
	rng   *rand.Rand
	setup *setup
	store *exporter
	spans []ptrace.Traces   // one span in each
	sent  []*otlpdata.Batch // accepted by the store
}

var shuffledDay = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const shuffledMinutes = 8

// make generates traces. Some last minutes. Each span except the root has an earlier span of the
// trace as its parent.
func (s *shuffled) make(traces int) {
	for trace := range traces {
		begin := shuffledDay.Add(time.Duration(s.rng.Int64N(int64(shuffledMinutes * time.Minute))))
		for n := range 1 + s.rng.IntN(40) {
			td := ptrace.NewTraces()
			rs := td.ResourceSpans().AppendEmpty()
			rs.Resource().Attributes().PutStr("service.name", fmt.Sprint("service ", s.rng.IntN(6)))
			span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
			span.SetTraceID(pcommon.TraceID(binary.BigEndian.AppendUint64(make([]byte, 8), uint64(trace+1))))
			span.SetSpanID(spanNumber(trace, n+1))
			if n > 0 {
				span.SetParentSpanID(spanNumber(trace, 1+s.rng.IntN(n)))
			}
			span.SetName(fmt.Sprint("operation ", s.rng.IntN(4)))
			span.SetKind(ptrace.SpanKind(s.rng.IntN(6)))
			span.Status().SetCode(ptrace.StatusCode(s.rng.IntN(3)))
			span.Attributes().PutStr("peer.service", fmt.Sprint("peer ", s.rng.IntN(4)))
			start := begin.Add(time.Duration(s.rng.Int64N(int64(time.Duration(n+1) * 5 * time.Second))))
			span.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
			span.SetEndTimestamp(span.StartTimestamp() + pcommon.Timestamp(s.rng.Uint64()>>(24+s.rng.IntN(40))))
			s.spans = append(s.spans, td)
		}
	}
}

func spanNumber(trace, n int) pcommon.SpanID {
	return pcommon.SpanID(binary.BigEndian.AppendUint64(nil, uint64(trace)<<32|uint64(n)))
}

// requests returns all spans in random order, 17 in each request.
func (s *shuffled) requests() (out []*otlpdata.Batch) {
	s.rng.Shuffle(len(s.spans), func(i, j int) { s.spans[i], s.spans[j] = s.spans[j], s.spans[i] })
	for some := range slices.Chunk(s.spans, 17) {
		td := ptrace.NewTraces()
		for _, one := range some {
			one.ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
		}
		out = append(out, batchOf(td))
	}
	return out
}

func (s *shuffled) send(requests []*otlpdata.Batch) {
	for _, b := range requests {
		if err := s.store.Consume(s.t.Context(), b); err != nil {
			s.t.Fatalf("Consume: %v", err)
		}
		s.sent = append(s.sent, b)
		if s.rng.IntN(100) == 0 {
			flushStore(s.t, s.store)
		}
	}
}

// check compares the answers for random windows with the spans that were sent.
func (s *shuffled) check(when string) {
	s.t.Helper()
	for range 15 {
		length := time.Duration(s.rng.Uint64() >> (20 + s.rng.IntN(40)))
		from := shuffledDay.Add(time.Duration(s.rng.Int64N(int64((shuffledMinutes + 2) * time.Minute))))
		if s.rng.IntN(2) == 0 {
			from = from.Truncate(time.Minute)
		}
		q := tracestore.MetricsQuery{ByOperation: s.rng.IntN(2) == 0, From: from, To: from.Add(length),
			Step: time.Duration(s.rng.IntN(4)) * time.Minute}
		s.checkCalls(when, q.From, q.To)
		s.checkMetrics(when, q)
	}
	s.checkCalls(when, time.Time{}, time.Time{})
	s.checkMetrics(when, tracestore.MetricsQuery{ByOperation: true})
	if s.t.Failed() {
		s.t.FailNow()
	}
}

func (s *shuffled) checkCalls(when string, from, to time.Time) {
	s.t.Helper()
	want, err := storequery.CountCalls(from, to, s.sent...)
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := s.store.Dependencies(s.t.Context(), "", from, to)
	if err != nil || !got.Complete() || len(got.Edges)+len(want) > 0 && !reflect.DeepEqual(got.Edges, want) {
		s.t.Errorf("%s: calls from %s to %s: %v, complete is %t\n got %+v\nwant %+v", when, from, to, err, got.Complete(), got.Edges, want)
	}
	peers, err := storequery.CountPeers(from, to, s.sent...)
	if err != nil {
		s.t.Fatal(err)
	}
	got, err = s.store.Peers(s.t.Context(), "", from, to)
	if err != nil || !got.Complete() || len(got.Edges)+len(peers.Edges) > 0 && !reflect.DeepEqual(got.Edges, peers.Edges) {
		s.t.Errorf("%s: calls to peers from %s to %s: %v, complete is %t\n got %+v\nwant %+v", when, from, to, err, got.Complete(), got.Edges,
			peers.Edges)
	}
}

// rates holds the expected values of a point.
type rates struct {
	errors    uint64
	durations []uint64
}

func (s *shuffled) rates(q tracestore.MetricsQuery) map[string]*rates {
	out := make(map[string]*rates)
	from, to, _ := q.Window()
	for _, b := range s.sent {
		err := tracestore.WalkSpans(b, func(sp tracestore.Span) error {
			if sp.Start < from || sp.Start > to {
				return nil
			}
			key := rateKey(sp.Resource.Service, "", sp.Start/q.StepLength()*q.StepLength())
			if q.ByOperation {
				key = rateKey(sp.Resource.Service, sp.Name, sp.Start/q.StepLength()*q.StepLength())
			}
			if out[key] == nil {
				out[key] = &rates{}
			}
			duration, _ := sp.Duration()
			out[key].durations = append(out[key].durations, duration)
			if sp.StatusCode == otlpdata.StatusError {
				out[key].errors++
			}
			return nil
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return out
}

func rateKey(service, operation string, start uint64) string {
	return fmt.Sprint(service, ", ", operation, " at ", start)
}

func (s *shuffled) checkMetrics(when string, q tracestore.MetricsQuery) {
	s.t.Helper()
	want := s.rates(q)
	got, err := s.store.Metrics(s.t.Context(), "", q)
	if err != nil || !got.Complete() {
		s.t.Errorf("%s: %+v: %v, %q", when, q, err, got.Text())
	}
	points := 0
	for _, series := range got.Series {
		for i := range series.Points {
			p := &series.Points[i]
			key := rateKey(series.Service, series.Operation, p.Start)
			if w := want[key]; w == nil || p.Calls != uint64(len(w.durations)) || p.Errors != w.errors || !near(p, w.durations) {
				s.t.Errorf("%s: %+v: %s: got %+v, want %+v", when, q, key, p, w)
			}
			points++
		}
	}
	if points != len(want) {
		s.t.Errorf("%s: %+v: %d points, want %d", when, q, points, len(want))
	}
}

// near reports whether percentiles are within six percent.
func near(p *tracestore.MetricPoint, durations []uint64) bool {
	slices.Sort(durations)
	for _, share := range []float64{0.5, 0.95, 0.99} {
		want := float64(durations[int(math.Ceil(share*float64(len(durations))))-1])
		if math.Abs(p.Durations.Quantile(share)-want) > 0.06*want {
			return false
		}
	}
	return true
}
