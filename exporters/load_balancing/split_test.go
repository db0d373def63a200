package loadbalancing

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// content is a visitor that lists every span with its resource and scope, all as bytes, and the key
// of each.
type content struct {
	by    *routing
	res   *otlpdata.Resource
	scope *otlpdata.Scope
	spans []string
	keys  []uint64
	ids   []otlpdata.TraceID
}

func (c *content) Resource(r *otlpdata.Resource) error { c.res = r; return nil }
func (c *content) Scope(s *otlpdata.Scope) error       { c.scope = s; return nil }
func (c *content) Span(s *otlpdata.Span) error {
	c.spans = append(c.spans, fmt.Sprintf("%q %q | %q %q | %q", c.res.Raw, c.res.SchemaURL, c.scope.Raw, c.scope.SchemaURL, s.Raw))
	c.keys = append(c.keys, c.by.key(c.res, c.scope, s))
	c.ids = append(c.ids, s.TraceID)
	return nil
}

func contentOf(t testing.TB, by *routing, b *otlpdata.Batch) *content {
	t.Helper()
	c := &content{by: by}
	if err := b.Walk(c); err != nil {
		t.Fatal(err)
	}
	return c
}

// checkSplit splits a batch and checks the parts: together they have exactly the spans of the
// batch, in order within each part, byte by byte with resource and scope; every span is in the part
// of its backend; the parts are valid and know their numbers.
func checkSplit(t testing.TB, b *otlpdata.Batch, backends int, by *routing) []part {
	t.Helper()
	r := newRing(addresses(backends))
	f := fixture()
	e := &exporter{routing: *by, budget: f.Settings.Budget}
	parts, reservation, err := e.split(b, r)
	if err != nil {
		t.Fatal(err)
	}
	if held := reservation.Held(); held != 0 && len(parts) < 2 || held == 0 && len(parts) > 1 {
		t.Fatalf("%d bytes reserved for %d parts", held, len(parts))
	}
	reservation.Release()
	want := make([][]string, backends)
	whole := contentOf(t, by, b)
	for i, s := range whole.spans {
		at := r.pick(whole.keys[i])
		want[at] = append(want[at], s)
	}
	for _, p := range parts {
		got := contentOf(t, by, p.batch)
		if !slices.Equal(got.spans, want[p.backend]) {
			t.Fatalf("backend %d gets\n%q\nwant\n%q", p.backend, got.spans, want[p.backend])
		}
		want[p.backend] = nil
		checkNumbers(t, p.batch, b.Meta())
	}
	for i, left := range want {
		if len(left) > 0 {
			t.Fatalf("backend %d has no part; want %q", i, left)
		}
	}
	return parts
}

// checkNumbers checks a part against what a receiver would make of its bytes.
func checkNumbers(t testing.TB, b *otlpdata.Batch, meta otlpdata.Meta) {
	t.Helper()
	encoded, err := b.Encoded()
	if err != nil {
		t.Fatal(err)
	}
	read, err := otlpdata.FromOTLP(encoded, meta, otlpdata.Limits{})
	if err != nil {
		t.Fatalf("part is not valid: %v", err)
	}
	if b.Len() == 0 || b.Len() != read.Len() || b.Size() != len(encoded) || b.Meta() != meta || !slices.Equal(b.Services(), read.Services()) {
		t.Fatalf("part has %d spans, %d bytes, services %v; its bytes have %d spans, %d bytes, services %v", b.Len(), b.Size(), b.Services(),
			read.Len(), len(encoded), read.Services())
	}
}

func routings() []*routing {
	return []*routing{{by: byTraceID}, {by: byService}, {by: byAttributes, attributes: []string{"key", pseudoKind}},
		{by: byAttributes, attributes: []string{"service.name", pseudoName, "missing"}}}
}

func TestSplit(t *testing.T) {
	joined, err := otlpdata.Concat(batch(t, "acme", 5, 2), batch(t, "acme", 1, 1), batch(t, "acme", 40, 3))
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range routings() {
		for _, b := range []*otlpdata.Batch{batch(t, "", 1, 1), batch(t, "acme", 50, 4), joined} {
			for _, backends := range []int{1, 2, 3, 20} {
				checkSplit(t, b, backends, by)
			}
		}
	}
	if got := checkSplit(t, joined, 3, &routing{by: byTraceID}); len(got) != 3 {
		t.Errorf("%d parts of 3", len(got))
	}
}

// A batch of one backend is not copied.
func TestSplitOfOneBackend(t *testing.T) {
	b := batch(t, "", 1, 10)
	if parts := checkSplit(t, b, 10, &routing{by: byTraceID}); len(parts) != 1 || parts[0].batch != b {
		t.Errorf("parts %v, want the batch itself", parts)
	}
	if parts := checkSplit(t, fromOTLP(t, nil, ""), 10, &routing{by: byTraceID}); len(parts) != 0 {
		t.Errorf("parts %v of a batch without spans", parts)
	}
}

// All spans of a trace, of a service or with equal attributes are in one part.
func TestSplitKeepsKeysTogether(t *testing.T) {
	b := batch(t, "", 30, 4)
	where := map[otlpdata.TraceID]int{}
	for _, p := range checkSplit(t, b, 5, &routing{by: byTraceID}) {
		for _, id := range contentOf(t, &routing{}, p.batch).ids {
			if before, seen := where[id]; seen && before != p.backend {
				t.Errorf("trace %s is in parts %d and %d", id, before, p.backend)
			}
			where[id] = p.backend
		}
	}
	services := map[string]int{}
	for _, p := range checkSplit(t, b, 5, &routing{by: byService}) {
		for _, s := range p.batch.Services() {
			if before, seen := services[s.Service]; seen && before != p.backend {
				t.Errorf("service %s is in parts %d and %d", s.Service, before, p.backend)
			}
			services[s.Service] = p.backend
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, b := range []*otlpdata.Batch{batch(f, "", 1, 1), batch(f, "", 7, 3)} {
		encoded, err := b.Encoded()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded, uint8(3))
	}
	f.Add([]byte("\x0a\x00"), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, backends uint8) {
		b, err := otlpdata.FromOTLP(data, otlpdata.Meta{Tenant: "acme"}, otlpdata.Limits{})
		if err != nil || backends == 0 {
			return
		}
		for _, by := range routings() {
			checkSplit(t, b, int(backends), by)
		}
	})
}

// BenchmarkSplit splits batches of 512 spans. See ns/span for the result.
func BenchmarkSplit(b *testing.B) {
	const spans = 512
	for _, traces := range []int{1, 64, 512} {
		for _, backends := range []int{2, 10} {
			b.Run(fmt.Sprintf("traces=%d/backends=%d", traces, backends), func(b *testing.B) {
				data, r := batch(b, "", traces, spans/traces), newRing(addresses(backends))
				e := &exporter{routing: routing{by: byTraceID}, budget: fixture().Settings.Budget}
				b.ReportAllocs()
				for b.Loop() {
					_, reservation, err := e.split(data, r)
					if err != nil {
						b.Fatal(err)
					}
					reservation.Release()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/spans, "ns/span")
			})
		}
	}
}

// A large resource that several parts repeat needs memory for each.
func TestMemoryOfRepeatedResource(t *testing.T) {
	const large, backends = 100 << 10, 16
	var out otlpdata.Builder
	out.Resource([]otlpdata.KeyValue{{Key: "large", Value: otlpdata.StringValue(strings.Repeat("x", large))}})
	for i := range 200 {
		out.Span(&otlpdata.Span{TraceID: otlpdata.TraceID{byte(i), 1}, SpanID: otlpdata.SpanID{1}})
	}
	b, err := otlpdata.FromOTLP(out.Bytes(), otlpdata.Meta{}, otlpdata.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		limit, used int64
		class       func(error) bool
	}{
		{4 << 20, 0, func(err error) bool { return err == nil }},
		{4 << 20, 3 << 20, func(err error) bool { return errors.Is(err, pipeline.ErrOverBudget) && pipeline.IsTemporary(err) }},
		{1 << 20, 0, pipeline.IsPermanent},
	} {
		budget := pipeline.NewBudget(c.limit)
		if _, err := budget.Reserve(c.used); err != nil {
			t.Fatal(err)
		}
		e := &exporter{routing: routing{by: byTraceID}, budget: budget}
		parts, reservation, err := e.split(b, newRing(addresses(backends)))
		if !c.class(err) {
			t.Errorf("limit %d, used %d: %d parts, error %v", c.limit, c.used, len(parts), err)
		}
		if err == nil {
			if held := reservation.Held(); len(parts) != backends || held < backends*large {
				t.Errorf("%d bytes are reserved for %d parts", held, len(parts))
			}
			reservation.Release()
		}
		if used := budget.Used(); used != c.used {
			t.Errorf("%d bytes stay reserved, want %d", used, c.used)
		}
	}
}
