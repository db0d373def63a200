package otlpdata

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// collect re-encodes every span, resource and scope that a walk shows.
type collect struct {
	t        *testing.T
	resource Resource
	scope    Scope
	out      []byte
	spans    int
}

func (c *collect) Resource(r *Resource) error {
	got, err := ReadResource(r.Raw, r.SchemaURL)
	if err != nil || got.Service != r.Service || got.SchemaURL != r.SchemaURL || got.DroppedAttributes != r.DroppedAttributes ||
		!sameAttributes(got.Attributes, r.Attributes) {
		c.t.Errorf("ReadResource: %+v, %v; want %+v", got, err, r)
	}
	c.resource = got
	return nil
}

func (c *collect) Scope(s *Scope) error {
	got, err := ReadScope(s.Raw, s.SchemaURL)
	if err != nil || got.Name != s.Name || got.Version != s.Version || got.SchemaURL != s.SchemaURL ||
		!sameAttributes(got.Attributes, s.Attributes) {
		c.t.Errorf("ReadScope: %+v, %v; want %+v", got, err, s)
	}
	c.scope = got
	return nil
}

func sameAttributes(a, b []KeyValue) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

func (c *collect) Span(s *Span) error {
	raw := AppendSpan(nil, s)
	again := AppendSpan(nil, s)
	if !bytes.Equal(raw, again) {
		c.t.Error("two encodings of one span differ")
	}
	for i := range s.Attributes {
		if v := s.Attributes[i].Value; v.Encoded() != "" && EncodedValue(v.Kind(), v.Encoded()) != v {
			c.t.Errorf("value %s does not come back", v.AsString())
		}
	}
	c.out = AppendResourceSpans(c.out, &c.resource, &c.scope, raw)
	c.spans++
	return nil
}

// TestAppendSpan decodes random spans, encodes what was read, and compares with pdata's view of both.
func TestAppendSpan(t *testing.T) {
	spec := requestSpec()
	group := spec.fields[0].sub
	group.fields = group.fields[:3] // without the deprecated field, which pdata's unmarshaler alone does not move to the new one
	value := group.fields[0].sub.fields[0].sub.fields[1].sub
	value.fields = value.fields[:7] // without the index into a string table, which means nothing in a span and is read as empty
	for seed := range uint64(300) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
		enc := g.message(spec, 6)
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(enc)
		if err != nil {
			t.Fatal(err)
		}
		c := &collect{t: t}
		if err := Walk(enc, c); err != nil {
			t.Fatal(err)
		}
		got, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(c.out)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if want, have := spansOf(td), spansOf(got); !reflect.DeepEqual(want, have) || len(have) != c.spans {
			t.Fatalf("seed %d: %d spans differ from the %d that were sent", seed, len(have), len(want))
		}
	}
}

// spansOf returns each span encoded by pdata.
func spansOf(td ptrace.Traces) (out []string) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				one := ptrace.NewTraces()
				s.CopyTo(one.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty())
				b, _ := (&ptrace.ProtoMarshaler{}).MarshalTraces(one)
				out = append(out, string(b))
			}
		}
	}
	return out
}
