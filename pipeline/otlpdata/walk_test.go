package otlpdata

import (
	"errors"
	"strings"
	"testing"
	"unsafe"
)

// stopper fails at the n-th call of any method.
type stopper struct {
	left  int
	calls []string
}

var errStop = errors.New("stop")

func (s *stopper) call(what string) error {
	s.calls = append(s.calls, what)
	if s.left--; s.left == 0 {
		return errStop
	}
	return nil
}

func (s *stopper) Resource(r *Resource) error { return s.call("resource " + r.Service) }
func (s *stopper) Scope(sc *Scope) error      { return s.call("scope " + sc.Name) }
func (s *stopper) Span(sp *Span) error        { return s.call("span " + sp.Name) }

func TestVisitorOrderAndErrors(t *testing.T) {
	scope := func(name string, spans ...[]byte) []byte {
		return fieldLen(2, cat(spans...), fieldLen(1, fieldText(1, name)))
	}
	named := func(n string) []byte { return fieldLen(2, fieldText(5, n)) }
	data := cat(fieldLen(1, scope("s1", named("a"), named("b")), scope("s2"), wireResource("r1")),
		fieldLen(1, wireResource("r2"), scope("s3", named("c"))))
	want := []string{"resource r1", "scope s1", "span a", "span b", "scope s2", "resource r2", "scope s3", "span c"}
	for n := 1; n <= len(want); n++ {
		v := stopper{left: n}
		if err := Walk(data, &v); err != errStop {
			t.Fatalf("stop at %d: got error %v", n, err)
		}
		if got := strings.Join(v.calls, ", "); got != strings.Join(want[:n], ", ") {
			t.Errorf("stop at %d: got %s", n, got)
		}
	}
}

func TestWalkWithinWalk(t *testing.T) {
	inner, outer := 0, 0
	err := Walk(sample(3), spanFunc(func(s *Span) error {
		outer++
		name := s.Name
		err := Walk(request(fieldText(5, "inner")), spanFunc(func(*Span) error {
			inner++
			return nil
		}))
		if s.Name != name || len(s.Attributes) != 9 {
			t.Errorf("the inner walk changed the outer span: %q, %d attributes", s.Name, len(s.Attributes))
		}
		return err
	}))
	if err != nil || outer != 3 || inner != 3 {
		t.Errorf("got %d and %d spans, %v", outer, inner, err)
	}
}

type spanFunc func(*Span) error

func (f spanFunc) Resource(*Resource) error { return nil }
func (f spanFunc) Scope(*Scope) error       { return nil }
func (f spanFunc) Span(s *Span) error       { return f(s) }

// TestStringsAliasTheChunk checks the contract of Visitor: strings and Raw may be kept and are
// not copied.
func TestStringsAliasTheChunk(t *testing.T) {
	data := sample(1)
	from := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	inside := func(p unsafe.Pointer) bool { return uintptr(p) >= from && uintptr(p) < from+uintptr(len(data)) }
	err := Walk(data, spanFunc(func(s *Span) error {
		v, _ := Get(s.Attributes, "url.path")
		for what, p := range map[string]unsafe.Pointer{"name": unsafe.Pointer(unsafe.StringData(s.Name)),
			"value": unsafe.Pointer(unsafe.StringData(v.Str())), "raw": unsafe.Pointer(unsafe.SliceData(s.Raw))} {
			if !inside(p) {
				t.Errorf("%s does not alias the chunk", what)
			}
		}
		if cap(s.Raw) != len(s.Raw) {
			t.Error("appending to Raw would write into the chunk")
		}
		if e := s.Events[0].Attributes; len(e) != 1 || cap(e) != 1 {
			t.Error("appending to an event's attributes would overwrite attributes of the next")
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
}

// TestWalkAllocatesNothingPerSpan compares a request of one span with one of 512. A pool may lose a
// walker at any time, which costs a few allocations, but not one per span.
func TestWalkAllocatesNothingPerSpan(t *testing.T) {
	one, many := sample(1), sample(512)
	allocations := func(b []byte) (validating, plain float64) {
		visitor := &counter{}
		return testing.AllocsPerRun(50, func() {
				if _, err := FromOTLP(b, Meta{}, Limits{}); err != nil {
					t.Fatal(err)
				}
			}), testing.AllocsPerRun(50, func() {
				if err := Walk(b, visitor); err != nil {
					t.Fatal(err)
				}
			})
	}
	v1, p1 := allocations(one)
	v512, p512 := allocations(many)
	const lost = 16
	if v512 > v1+lost || p512 > p1+lost {
		t.Errorf("allocations: FromOTLP %v for one span and %v for 512, Walk %v and %v", v1, v512, p1, p512)
	}
}

// Every prefix of a request is invalid or has fewer spans.
func TestPrefixes(t *testing.T) {
	data := cat(sample(2), quirks()["all span fields"], quirks()["array mixed"])
	whole := fromOTLP(t, data, Meta{}).Len()
	for n := range data {
		b, err := FromOTLP(data[:n:n], Meta{}, Limits{})
		if err == nil && b.Len() >= whole {
			t.Errorf("%d of %d bytes: got all %d spans", n, len(data), b.Len())
		}
		if err != nil && !strings.HasPrefix(err.Error(), "otlp: ") {
			t.Errorf("%d of %d bytes: error lacks the prefix otlp: %v", n, len(data), err)
		}
	}
}
