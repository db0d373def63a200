package otlpdata

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/soak"
)

func TestParseSampling(t *testing.T) {
	f := func(tracestate string, want Sampling) {
		t.Helper()
		if got := ParseSampling(tracestate); got != want {
			t.Errorf("%q: %+v, want %+v", tracestate, got, want)
		}
		if got := ParseSamplingBytes([]byte(tracestate)); got != want {
			t.Errorf("%q as bytes: %+v, want %+v", tracestate, got, want)
		}
	}
	half := Sampling{Threshold: 1 << 55, HasThreshold: true}
	for _, s := range []string{"ot=th:8", "ot=th:80000000000000", "a=1,ot=th:8,b=2", "a=1, ot=th:8 ,b=2", "\tot=x:1;th:8;y", "ot=th:8;rv:8",
		",ot=th:8", "ot=th:8,ot=th:c", "ot=th:z;th:8", "ot=;th:8"} {
		f(s, half)
	}
	f("ot=th:0", Sampling{HasThreshold: true})
	f("ot=th:ffffffffffffff", Sampling{Threshold: RejectAll - 1, HasThreshold: true})
	f("ot=rv:8000000000000f;th:8", Sampling{Threshold: 1 << 55, HasThreshold: true, Randomness: 1<<55 | 15, HasRandomness: true})
	f("ot=rv:00000000000000", Sampling{HasRandomness: true})
	for _, s := range []string{"", ",", "=", ";", "ot", "ot=", "ot=th", "ot=th:", "ot=th:C", "ot=th:-1", "ot=th: 8",
		"ot=th:000000000000000",
		"ot=TH:8", "OT=th:8", "xot=th:8", "ot =th:8", "o=th:8", "ot=a,ot=th:8", "ot=rv:8", "th:8", "a=ot=th:8"} {
		f(s, Sampling{})
	}
}

func TestAppendThreshold(t *testing.T) {
	f := func(tracestate string, threshold Threshold, want string) {
		t.Helper()
		if got := string(AppendThreshold([]byte("-"), []byte(tracestate), threshold)); got != "-"+want {
			t.Errorf("%q: %q, want %q", tracestate, got, want)
		}
	}
	f("", 1<<55, "ot=th:8")
	f("", 0, "ot=th:0")
	f("", RejectAll-1, "ot=th:ffffffffffffff")
	f("", 1<<40, "ot=th:0001")
	f("a=1, b=2,,", 1<<55, "ot=th:8,a=1, b=2")
	f("a=1,ot=th:c;rv:1;;x:y,b=2", 1<<55, "ot=th:8;rv:1;x:y,a=1,b=2")
}

// ids returns random ids, the same in each run. The trace passes the threshold, as in a store.
func ids(r *rand.Rand, t Threshold) (trace TraceID, span SpanID) {
	binary.BigEndian.PutUint64(trace[:], r.Uint64())
	binary.BigEndian.PutUint64(trace[8:], r.Uint64()<<56|uint64(t)+r.Uint64N(uint64(RejectAll-t)))
	binary.BigEndian.PutUint64(span[:], r.Uint64())
	return trace, span
}

func TestAdjustedCounts(t *testing.T) {
	f := func(tracestate string, least, most uint64) {
		t.Helper()
		seen, r := map[uint64]bool{}, rand.New(rand.NewPCG(1, 2))
		for range 1000 {
			s := Span{TraceState: tracestate}
			s.TraceID, s.SpanID = ids(r, ParseSampling(tracestate).Threshold)
			n := s.AdjustedCount()
			if seen[n] = true; n < least || n > most || n != AdjustedCount(s.TraceState, s.TraceID, s.SpanID) {
				t.Fatalf("%q: got %d, want %d to %d, the same in each call", tracestate, n, least, most)
			}
		}
		if len(seen) != int(most-least+1) {
			t.Errorf("%q: %v, want all of %d to %d", tracestate, seen, least, most)
		}
	}
	f("", 1, 1)
	f("ot=th:0", 1, 1)
	f("ot=th:8", 2, 2)
	f("ot=th:c", 4, 4)
	f("a=1,ot=rv:ffffffffffffff;th:c,b=2", 4, 4)
	f("ot=th:b333", 3, 4)
	f("ot=th:4", 1, 2)
	f("ot=th:ffffff", MaxAdjustedCount, MaxAdjustedCount)
	f("ot=th:fffffeffffffff", 1<<24-1, MaxAdjustedCount)
	for _, implausible := range []string{"ot=rv:7fffffffffffff;th:8", "ot=th:ffffff00000001", "ot=th:ffffff8", "ot=th:ffffffffffffff",
		"ot=th:x", "ot=th:", "th:8"} {
		f(implausible, 1, 1)
	}
	rejected := Span{TraceState: "ot=th:8", TraceID: TraceID{8: 0xff, 9: 0x7f, 10: 0xff}}
	if n := rejected.AdjustedCount(); n != 1 {
		t.Errorf("threshold that rejects the trace: got %d, want 1", n)
	}
	if rejected.TraceState = "ot=th:8;rv:80000000000000"; rejected.AdjustedCount() != 2 {
		t.Error("the randomness of the id overrides the one in the tracestate")
	}
	for _, threshold := range []Threshold{RejectAll, RejectAll + 1, math.MaxUint64} {
		if n := threshold.adjustedCount(TraceID{}, SpanID{}); n != 1 {
			t.Errorf("threshold %x: %d", threshold, n)
		}
	}
}

// TestAdjustedCountsAreStable pins some numbers, because stores have them on disk.
func TestAdjustedCountsAreStable(t *testing.T) {
	var got []uint64
	for i := range byte(12) {
		got = append(got, AdjustedCount("ot=th:b333", TraceID{1, 9: 0xff, 15: i}, SpanID{i % 3}))
	}
	if want := []uint64{3, 3, 4, 3, 3, 3, 3, 3, 3, 3, 3, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestAdjustedCountsMean: the mean over many sampled spans is exact, whether their trace ids, their
// span ids or both are consecutive.
func TestAdjustedCountsMean(t *testing.T) {
	soak.SkipIfRaced(t)
	const spans = 200_000
	mean := func(what string, threshold Threshold, next func(i uint64, trace *TraceID, span *SpanID)) {
		t.Helper()
		sum, trace, span := uint64(0), TraceID{}, SpanID{}
		for i := range uint64(spans) {
			next(i, &trace, &span)
			sum += threshold.adjustedCount(trace, span)
		}
		want := 1 / threshold.Probability()
		_, part := math.Modf(want)
		if got := float64(sum) / spans; math.Abs(got-want) > 5*math.Sqrt(part*(1-part)/spans)+1e-9 {
			t.Errorf("%s, th:%s: %v, want %v", what, threshold.Append(nil), got, want)
		}
	}
	for _, digits := range []string{"0001", "1", "2", "4", "5555", "8", "b333", "e666", "e8", "fd70a", "ffbe76c8b4395"} {
		threshold := ParseSampling("ot=th:" + digits).Threshold
		r := rand.New(rand.NewPCG(3, 4))
		mean("random", threshold, func(_ uint64, trace *TraceID, span *SpanID) { *trace, *span = ids(r, threshold) })
		mean("traces in a row", threshold, func(i uint64, trace *TraceID, _ *SpanID) {
			binary.BigEndian.PutUint64(trace[8:], uint64(threshold)+i)
		})
		mean("upper halves in a row", threshold, func(i uint64, trace *TraceID, _ *SpanID) { binary.BigEndian.PutUint64(trace[:], i) })
		mean("spans in a row", threshold, func(i uint64, _ *TraceID, span *SpanID) { binary.BigEndian.PutUint64(span[:], i) })
	}
}

func TestSamplingDoesNotAllocate(t *testing.T) {
	state := strings.Repeat("a=b, ", 20) + "ot=th:b333;rv:b3345678901234"
	encoded, s := []byte(state), Span{TraceState: state}
	if n := testing.AllocsPerRun(100, func() {
		if s.AdjustedCount() < 3 || !ParseSamplingBytes(encoded).HasRandomness {
			t.Error("the tracestate is not parsed")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzSampling(f *testing.F) {
	for _, s := range []string{"", "ot=th:8", "a=b,ot=rv:12;th:fd70a", "ot=th:ffffffffffffff", "ot=th:b333;th:x,ot=th:8", ",;:=ot=th:"} {
		f.Add(s, uint64(1)<<55)
	}
	f.Fuzz(func(t *testing.T, tracestate string, n uint64) {
		s := ParseSampling(tracestate)
		if s.Threshold >= RejectAll || s.Randomness >= uint64(RejectAll) || !s.HasThreshold && s.Threshold != 0 ||
			!(s.Threshold.Probability() > 0 && s.Threshold.Probability() <= 1) || s != ParseSamplingBytes([]byte(tracestate)) {
			t.Errorf("%q: %+v", tracestate, s)
		}
		var trace TraceID
		var span SpanID
		binary.BigEndian.PutUint64(trace[4:], n)
		binary.BigEndian.PutUint64(span[:], n)
		count, want := AdjustedCount(tracestate, trace, span), 1/s.Threshold.Probability()
		if count < 1 || count > MaxAdjustedCount || count > 1 && math.Abs(float64(count)-want) > 1 {
			t.Errorf("%q: %d of %v", tracestate, count, want)
		}
		threshold := Threshold(n % uint64(RejectAll))
		out := AppendThreshold(nil, []byte(tracestate), threshold)
		if again := ParseSamplingBytes(out); again.Threshold != threshold || !again.HasThreshold || again.HasRandomness != s.HasRandomness {
			t.Errorf("%q became %q", tracestate, out)
		}
	})
}

func BenchmarkAdjustedCount(b *testing.B) {
	for _, tracestate := range []string{"", "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7", "ot=th:b333"} {
		b.Run(tracestate, func(b *testing.B) {
			b.ReportAllocs()
			s := Span{TraceState: tracestate, TraceID: TraceID{1, 9: 0xff}}
			for b.Loop() {
				s.AdjustedCount()
			}
		})
	}
}
