package native

import (
	"math"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
)

// Translating spans to the native model, back to OTLP and to the native model again gives the same
// requests.
func TestRoundTrip(t *testing.T) {
	for _, c := range outgoingCases() {
		t.Run(c.name, func(t *testing.T) { checkRoundTrip(t, encoded(t, one(c.build))) })
	}
	t.Run("data set", func(t *testing.T) {
		for r := range bench.New(7, time.Unix(1_800_000_000, 0)).Requests(2000, 100) {
			checkRoundTrip(t, r.Body)
		}
	})
	t.Run("several services", func(t *testing.T) {
		checkRoundTrip(t, append(append(service(t, "a", 3, 0), service(t, "b", 2, 0)...), service(t, "a", 1, 0)...))
	})
}

func checkRoundTrip(t *testing.T, request []byte) {
	t.Helper()
	first := outgoing(t, request)
	otlp, err := FromPostSpans(first, 0)
	if err != nil {
		t.Fatal(err)
	}
	want, got := resolved(decodeRequest(t, first)), resolved(decodeRequest(t, outgoing(t, otlp)))
	if len(got) != len(want) {
		t.Fatalf("%d spans became %d", len(want), len(got))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got\n%swant\n%s", got[i], want[i])
		}
	}
}

// checkReadable checks that requests can be translated back with all spans.
func checkReadable(t *testing.T, request []byte, spans int) {
	t.Helper()
	otlp, err := FromPostSpans(request, 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := otlpdata.FromOTLP(otlp, otlpdata.Meta{}, otlpdata.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if b.Len() != spans {
		t.Fatalf("got %d spans, want %d", b.Len(), spans)
	}
}

// batchOf returns a batch of chunks.
func batchOf(chunks ...[]byte) *otlpdata.Batch {
	parts := []*otlpdata.Batch{otlpdata.FromStored(nil, otlpdata.Meta{})}
	for _, c := range chunks {
		parts = append(parts, otlpdata.FromStored(c, otlpdata.Meta{}))
	}
	b, err := otlpdata.Concat(parts...)
	if err != nil { // cannot happen: all parts have the same tenant
		panic(err)
	}
	return b
}

// appendPostSpans appends one request of all spans.
func appendPostSpans(dst []byte, chunks [][]byte) ([]byte, error) {
	out := dst
	err := SplitPostSpans(batchOf(chunks...), math.MaxInt, func() []byte { return dst }, func(request []byte, _ int) error {
		out = request
		return nil
	})
	return out, err
}
