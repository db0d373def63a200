package memory

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// TestCallsAreExact checks that this store counts each duplicate exactly once, unlike other stores.
func TestCallsAreExact(t *testing.T) {
	e, _ := open(t, 0)
	rng := rand.New(rand.NewPCG(1, 2))
	var sent []*otlpdata.Batch
	for i := range 60 {
		td := ordinary(i%20, 1)
		for _, rs := range td.ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				s.SetSpanID(pcommon.SpanID{7: byte(rng.IntN(8))})
				s.SetParentSpanID(pcommon.SpanID{7: byte(rng.IntN(8))})
			}
		}
		b := batch(t, "", td)
		sent = append(sent, b, b)
		consume(t, e, b)
		consume(t, e, b)
	}
	for _, window := range [][2]int64{{0, 20_000_000}, {3_000_000, 9_000_500}, {5_000_000, 5_000_000}} {
		from, to := time.Unix(0, benchBase+window[0]), time.Unix(0, benchBase+window[1])
		want, err := storequery.CountCalls(from, to, sent...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Dependencies(t.Context(), "", from, to)
		if err != nil || !got.Complete() || !reflect.DeepEqual(got.Edges, want) {
			t.Errorf("%v: %+v, %v, want %+v", window, got, err, want)
		}
	}
}
