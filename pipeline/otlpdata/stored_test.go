package otlpdata

import (
	"reflect"
	"testing"
)

// storing reads every span again and assembles all of them like a store.
type storing struct {
	t        *testing.T
	reader   SpanReader
	resource *Resource
	scope    *Scope
	chunk    []byte
	services []ServiceCount
}

func (v *storing) Resource(r *Resource) error { v.resource = r; return nil }
func (v *storing) Scope(s *Scope) error       { v.scope = s; return nil }

func (v *storing) Span(s *Span) error {
	read, err := v.reader.Read(s.Raw)
	if read == nil {
		read = &Span{}
	}
	if err != nil || !reflect.DeepEqual(withoutEmptyLists(*read), withoutEmptyLists(*s)) {
		v.t.Errorf("read %+v, %v, want %+v", read, err, s)
	}
	n := ServiceCount{Service: v.resource.Service, Spans: 1}
	if s.ParentID.IsZero() {
		n.Roots = 1
	}
	v.services = append(v.services, n)
	v.chunk = AppendResourceSpans(v.chunk, v.resource, v.scope, s.Raw)
	return nil
}

// withoutEmptyLists returns a span whose empty lists are nil. Whether an empty list of a walker is
// nil depends on what it read before.
func withoutEmptyLists(s Span) Span {
	if len(s.Attributes) == 0 {
		s.Attributes = nil
	}
	if len(s.Events) == 0 {
		s.Events = nil
	}
	if len(s.Links) == 0 {
		s.Links = nil
	}
	return s
}

func TestStoredSpans(t *testing.T) {
	in := fromOTLP(t, sample(5), Meta{Tenant: "a"})
	v := &storing{t: t}
	for _, s := range chunksOf(t, in) {
		if err := Walk(s, v); err != nil {
			t.Fatal(err)
		}
	}
	out := FromStored(v.chunk, in.Meta(), v.services...)
	if out.Len() != in.Len() || out.Meta() != in.Meta() || out.Size() != len(v.chunk) || !reflect.DeepEqual(out.Services(), in.Services()) {
		t.Errorf("%d spans of %v in %d bytes, want %d of %v", out.Len(), out.Services(), out.Size(), in.Len(), in.Services())
	}
	checkTwoForms(t, out)
}

func TestSpanReaderInvalid(t *testing.T) {
	var r SpanReader
	if s, err := r.Read([]byte{0xff}); err == nil {
		t.Errorf("read %+v", s)
	}
}
