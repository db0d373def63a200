package otlpdata

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// collect encodes every span, resource and scope of a walk again.
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
		c.t.Error("two encodings of the same span differ")
	}
	for i := range s.Attributes {
		if v := s.Attributes[i].Value; v.Encoded() != "" && EncodedValue(v.Kind(), v.Encoded()) != v {
			c.t.Errorf("value %s changed after Encoded and EncodedValue", v.AsString())
		}
	}
	c.out = AppendResourceSpans(c.out, &c.resource, &c.scope, raw)
	c.spans++
	return nil
}

// TestAppendSpan encodes random spans again and compares what pdata reads from both encodings.
func TestAppendSpan(t *testing.T) {
	spec := requestSpec()
	group := spec.fields[0].sub
	// Without the deprecated field, which pdata's ProtoUnmarshaler does not move to the new one.
	group.fields = group.fields[:3]
	value := group.fields[0].sub.fields[0].sub.fields[1].sub
	// Without the index into a string table, which has no meaning in a span and is read as empty.
	value.fields = value.fields[:7]
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
			t.Fatalf("seed %d: got %d spans that differ from the %d original ones", seed, len(have), len(want))
		}
	}
}

// spansOf returns each span in pdata's encoding.
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
