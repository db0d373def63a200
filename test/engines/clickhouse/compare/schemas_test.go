package compare

import (
	"errors"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

// TestSchemas checks that the published schemas return what was stored.
func TestSchemas(t *testing.T) {
	d := newData(5000)
	for _, s := range all3[1:] {
		t.Run(s.name, func(t *testing.T) {
			e := engine.Shared(t)
			sub := s.create(t, connect(t, e.HTTPAddr(), e.Database(t)))
			for b := range d.batches(t, 2000) {
				if err := sub.write(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
			for _, i := range []int{0, d.traces / 2, d.traces - 1} {
				want := d.set.Trace(i)
				if n, err := sub.trace(t.Context(), want[0].TraceID); err != nil || n != len(want) {
					t.Errorf("trace %d: %d spans, %v; want %d", i, n, err, len(want))
				}
			}
			checkSearches(t, d, sub)
		})
	}
}

// checkSearches compares searches of a service with the data, without the order, which the schema
// of Jaeger does not have.
func checkSearches(t *testing.T, d *data, sub subject) {
	t.Helper()
	from, to := d.window()
	service := d.set.Services()[0]
	q := search{service: service, from: from, to: to, limit: 10_000}
	due := map[otlpdata.TraceID]bool{}
	calls := uint64(0)
	for i := range d.traces {
		for _, s := range d.set.Trace(i) {
			if d.set.Resources()[s.Resource].Service == service {
				due[s.TraceID], calls = true, calls+1
			}
		}
	}
	found, err := sub.newest(t.Context(), q)
	if err != nil || len(found) != len(due) || slices.ContainsFunc(found, func(id otlpdata.TraceID) bool { return !due[id] }) {
		t.Errorf("found %d traces, %v; want %d", len(found), err, len(due))
	}
	if n, err := sub.summaries(t.Context(), q); !errors.Is(err, errNone) && (err != nil || n != len(due)) {
		t.Errorf("summaries of %d traces, %v; want %d", n, err, len(due))
	}
	if n, err := sub.red(t.Context(), q); err != nil || n != calls {
		t.Errorf("%d calls, %v; want %d", n, err, calls)
	}
	if n, err := sub.heatmap(t.Context(), q); err != nil || n != calls {
		t.Errorf("%d spans in the heatmap, %v; want %d", n, err, calls)
	}
}
