package resourcetags

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink is a consumer that stores the last batch.
type sink struct{ b *otlpdata.Batch }

func (s *sink) Consume(_ context.Context, b *otlpdata.Batch) error {
	s.b = b
	return nil
}

func build(tb testing.TB, budget int64, tags map[string]string) (*tagger, *sink) {
	next := &sink{}
	p, err := newTagger(pipeline.Settings{Budget: pipeline.NewBudget(budget)}, Config{Tags: tags}, next)
	if err != nil {
		tb.Fatal(err)
	}
	return p, next
}

func traces(attributes ...map[string]any) ptrace.Traces {
	td := ptrace.NewTraces()
	for _, a := range attributes {
		rs := td.ResourceSpans().AppendEmpty()
		if a != nil {
			rs.Resource().Attributes().FromRaw(a) //nolint:errcheck // only supported types
		}
		rs.SetSchemaUrl("schema")
		rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("span")
	}
	return td
}

func encoded(tb testing.TB, td ptrace.Traces) []byte {
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

var meta = otlpdata.Meta{Tenant: "t", Format: "otlp"}

func fromOTLP(tb testing.TB, b []byte) *otlpdata.Batch {
	out, err := otlpdata.FromOTLP(b, meta, otlpdata.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func TestTags(t *testing.T) {
	p, next := build(t, 0, map[string]string{"region": "eu", "env": "prod"})
	td := traces(map[string]any{"service.name": "a"}, nil, map[string]any{"env": "prod"}, map[string]any{"env": "test", "region": 7})
	want := []map[string]any{
		{"service.name": "a", "env": "prod", "region": "eu"},
		{"env": "prod", "region": "eu"},
		{"env": "prod", "region": "eu"},
		{"env": "test,prod", "region": "7,eu"},
	}
	half := fromOTLP(t, encoded(t, td))
	both, err := otlpdata.Concat(half, fromOTLP(t, encoded(t, td)))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		b     *otlpdata.Batch
		times int
	}{"bytes": {half, 1}, "objects": {otlpdata.FromTraces(td, meta), 1}, "two chunks": {both, 2}} {
		if err := p.Consume(t.Context(), c.b); err != nil {
			t.Fatal(err)
		}
		got, err := next.b.Traces()
		if err != nil || next.b.Meta() != meta || next.b.Len() != c.times*len(want) || got.ResourceSpans().Len() != c.times*len(want) {
			t.Fatalf("%s: %v, %+v, %d spans", name, err, next.b.Meta(), next.b.Len())
		}
		for i, rs := range got.ResourceSpans().All() {
			if a := values(rs.Resource().Attributes()); !maps.Equal(a, want[i%len(want)]) {
				t.Errorf("%s: resource %d has %v", name, i, a)
			}
			if rs.SchemaUrl() != "schema" || rs.ScopeSpans().At(0).Spans().At(0).Name() != "span" {
				t.Errorf("%s: resource %d lost data", name, i)
			}
		}
	}
}

// values joins the values of a key that occurs more than once.
func values(m pcommon.Map) map[string]any {
	out := map[string]any{}
	for k, v := range m.All() {
		if before, twice := out[k]; twice {
			out[k] = before.(string) + "," + v.AsString()
		} else {
			out[k] = v.AsString()
		}
	}
	return out
}

// A resource may be split, come after its spans, and have unknown fields.
func TestResourceInPieces(t *testing.T) {
	p, next := build(t, 0, map[string]string{"env": "prod"})
	piece := func(key string) []byte {
		return appendBytes(nil, fieldResource, appendBytes(nil, fieldAttributes, newTag(key, "x").encoded))
	}
	scope := appendBytes(nil, 2, appendBytes(nil, 2, nil))
	unknown := appendBytes(nil, 99, []byte("later"))
	group := slices.Concat(piece("a"), scope, piece("b"), unknown)
	request := slices.Concat(appendBytes(nil, 1, group), unknown, appendBytes(nil, 1, nil))
	if err := p.Consume(t.Context(), fromOTLP(t, request)); err != nil {
		t.Fatal(err)
	}
	encoded, _ := next.b.Encoded()
	if n := bytes.Count(encoded, unknown); n != 2 {
		t.Errorf("%d of 2 unknown fields copied", n)
	}
	td, err := next.b.Traces()
	if err != nil || td.ResourceSpans().Len() != 2 {
		t.Fatalf("%v", err)
	}
	if got := values(td.ResourceSpans().At(0).Resource().Attributes()); len(got) != 3 || got["env"] != "prod" {
		t.Errorf("got %v", got)
	}
	if n := td.ResourceSpans().At(1).Resource().Attributes().Len(); n != 0 {
		t.Errorf("a resource without spans got %d tags", n)
	}
}

func TestTagsAreCharged(t *testing.T) {
	p, next := build(t, 1<<20, map[string]string{"env": strings.Repeat("x", 1000)})
	many := func(n int) *otlpdata.Batch {
		return fromOTLP(t, encoded(t, traces(slices.Repeat([]map[string]any{nil}, n)...)))
	}
	if err := p.Consume(t.Context(), many(2000)); !pipeline.IsPermanent(err) || next.b != nil {
		t.Errorf("2 MB of tags: %v", err)
	}
	other, err := p.budget.Reserve(1 << 19)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Consume(t.Context(), many(600)); !errors.Is(err, pipeline.ErrOverBudget) || next.b != nil {
		t.Errorf("600 kB of tags: %v", err)
	}
	other.Release()
	if err := p.Consume(t.Context(), fromOTLP(t, encoded(t, traces(nil)))); err != nil || p.budget.Used() != 0 {
		t.Errorf("afterwards: %v, %d bytes reserved", err, p.budget.Used())
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{{}, {Tags: map[string]string{"": "x"}}} {
		var key *pipeline.KeyError
		if err := c.Validate(); !errors.As(err, &key) || key.Key != "tags" {
			t.Errorf("%v: %v", c, err)
		}
	}
	if err := (&Config{Tags: map[string]string{"a": ""}}).Validate(); err != nil {
		t.Error(err)
	}
}

// FuzzTags checks that the result is a valid request with the same number of spans, within the
// maximum size.
func FuzzTags(f *testing.F) {
	f.Add(encoded(f, traces(nil, map[string]any{"env": "prod"})))
	f.Add(slices.Concat(appendBytes(nil, 1, nil), appendBytes(nil, 1, appendBytes(nil, 1, nil)), appendBytes(nil, 99, []byte("x"))))
	p, next := build(f, 0, map[string]string{"env": "prod", "region": "eu"})
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := otlpdata.FromOTLP(b, meta, otlpdata.Limits{Depth: math.MaxInt})
		if err != nil || in.Len() == 0 {
			return
		}
		if err := p.Consume(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		encoded, err := next.b.Encoded()
		if err != nil || next.b.Len() != in.Len() {
			t.Fatalf("%d spans became %d, %v", in.Len(), next.b.Len(), err)
		}
		if got, limit := int64(len(encoded)), p.maxSize(slices.Values([][]byte{b})); got > limit {
			t.Errorf("%d bytes, want at most %d", got, limit)
		}
		if err := ptraceotlp.NewExportRequest().UnmarshalProto(encoded); err != nil {
			t.Error(err)
		}
	})
}
