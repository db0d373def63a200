package names

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// named returns a request of a tenant whose spans have the given names.
func named(tenant, service string, names ...string) *otlpdata.Batch {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", service)
	list := rs.ScopeSpans().AppendEmpty().Spans()
	for i, name := range names {
		s := list.AppendEmpty()
		s.SetTraceID([16]byte{byte(i), 1})
		s.SetName(name)
		s.SetKind(ptrace.SpanKindClient)
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{Tenant: tenant})
}

// countedCatalog is a segment that counts how often its catalog is read.
type countedCatalog struct {
	*segment.Segment
	asked *int
	err   error
}

func (s countedCatalog) Services() ([]source.Service, error) {
	*s.asked++
	list, err := s.Segment.Services()
	return list, errors.Join(s.err, err)
}

func (s realStore) checkNames(t *testing.T, tenant string, want map[string][]string) {
	t.Helper()
	services, _, err := s.Services(t.Context(), tenant, tracestore.NameQuery{})
	if err != nil || len(services) != len(want) || !slices.IsSorted(services) {
		t.Fatalf("services of %s are %q, %v; want those of %v", tenant, services, err, want)
	}
	for _, service := range services {
		for kind, shown := range map[string]bool{"": true, "client": true, "server": false} {
			var ops []tracestore.Operation
			for _, name := range want[service] {
				if shown {
					ops = append(ops, tracestore.Operation{Name: name, Kind: "client"})
				}
			}
			got, _, err := s.Operations(t.Context(), tenant, service, kind, tracestore.NameQuery{})
			if err != nil || !slices.Equal(got, ops) {
				t.Errorf("tenant %s, service %s, kind %q: got %v, %v; want %v", tenant, service, kind, got, err, ops)
			}
		}
	}
}

// TestNames checks that the catalogs of segments are read once, that names disappear with the last
// segment that has them, and that names of memtables and of segments with damaged catalogs are
// listed.
func TestNames(t *testing.T) {
	asked, reports := 0, 0
	s := newRealStore(t, 1, scan.Options{OnDamage: func(*source.DamageError) { reports++ }})
	add := func(err error, b *otlpdata.Batch) {
		s.SegmentOf(t, b)
		last := len(s.Segments) - 1
		s.Segments[last] = countedCatalog{s.Segments[last].(*segment.Segment), &asked, err}
	}
	add(nil, named("a", "x", "1", "2"))
	add(nil, named("b", "x", "9"))
	s.checkNames(t, "a", map[string][]string{"x": {"1", "2"}})
	s.checkNames(t, "b", map[string][]string{"x": {"9"}})
	if asked != 2 {
		t.Errorf("two catalogs read %d times", asked)
	}
	add(nil, named("a", "w", "2"))
	if _, err := s.Tables[1].Append(named("a", "x", "0", "2"), 0); err != nil {
		t.Fatal(err)
	}
	add(&source.DamageError{File: "f", Part: "catalog", Err: errors.New("rotten")}, named("a", "y", "3"))
	s.checkNames(t, "a", map[string][]string{"x": {"0", "1", "2"}, "w": {"2"}, "y": {"3"}})
	if asked != 4 || reports != 1 {
		t.Errorf("four catalogs read %d times, with %d reports of damage", asked, reports)
	}
	s.Segments = s.Segments[1:]
	s.checkNames(t, "a", map[string][]string{"x": {"0", "2"}, "w": {"2"}, "y": {"3"}})
	s.checkNames(t, "c", nil)
}

// TestOperationsInRows checks that names in rows are listed together with those of other segments.
func TestOperationsInRows(t *testing.T) {
	s := newRealStore(t, 1, scan.Options{})
	var many []string
	for i := range 3000 {
		many = append(many, fmt.Sprintf("name %04d", i))
	}
	s.SegmentOf(t, named("", "x", many...))
	s.SegmentOf(t, named("", "x", "another"))
	list, err := s.Segments[0].(source.Catalog).Services()
	if err != nil || len(list) != 1 || !list[0].NamesInRows {
		t.Fatalf("test needs more names: %+v, %v", list, err)
	}
	s.checkNames(t, "", map[string][]string{"x": append([]string{"another"}, many...)})
}

// TestNamesWithoutMemory checks that names are correct if there is no memory to cache them.
func TestNamesWithoutMemory(t *testing.T) {
	s := newRealStore(t, 1, scan.Options{Memory: 1, MaxValues: 2})
	s.SegmentOf(t, named("", "x", "1", "2", "3"))
	for range 2 {
		s.checkNames(t, "", map[string][]string{"x": {"1", "2"}})
	}
	if s.index.Load() != nil {
		t.Error("names were cached without memory")
	}
}

// TestNamesOfManySources compares names with the vocabularies of all sources, while segments are
// added and removed.
func TestNamesOfManySources(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	s := newRealStore(t, 1, scan.Options{})
	var sent [][]string // by segment: the service and its operations
	for range 60 {
		if len(sent) > 5 || len(sent) > 0 && rng.IntN(3) == 0 {
			i := rng.IntN(len(sent))
			sent, s.Segments = slices.Delete(sent, i, i+1), slices.Delete(s.Segments, i, i+1)
		} else {
			names := []string{fmt.Sprint("service ", rng.IntN(3)), fmt.Sprint(rng.IntN(5)), fmt.Sprint(rng.IntN(5))}
			s.SegmentOf(t, named("", names[0], names[1:]...))
			sent = append(sent, names)
		}
		want := map[string][]string{}
		for _, names := range sent {
			list := append(want[names[0]], names[1:]...)
			slices.Sort(list)
			want[names[0]] = slices.Compact(list)
		}
		s.checkNames(t, "", want)
	}
	if got := s.index.Load(); len(got.sources) != len(s.Segments) {
		t.Errorf("names of %d segments cached, want %d", len(got.sources), len(s.Segments))
	}
}

// transient is a source with a catalog but without statistics.
type transient struct {
	source.Source
	asked *int
}

func (p *transient) Services() ([]source.Service, error) {
	*p.asked++
	return p.Source.(source.Catalog).Services()
}

// TestNamesOfTransientSources checks that sources that differ in every view do not invalidate the
// names of segments.
func TestNamesOfTransientSources(t *testing.T) {
	asked := 0
	s := newRealStore(t, 1, scan.Options{})
	s.SegmentOf(t, named("", "x", "1"))
	s.SegmentOf(t, named("", "y", "2"))
	s.Segments[0] = countedCatalog{s.Segments[0].(*segment.Segment), &asked, nil}
	inner := s.Segments[1]
	want := map[string][]string{"x": {"1"}, "y": {"2"}}
	passed := 0
	for range 5 {
		s.Segments[1] = &transient{inner, &passed}
		if l, _, err := s.Services(t.Context(), "", tracestore.NameQuery{}); err != nil || !slices.Equal(l, []string{"x", "y"}) {
			t.Fatal(l, err)
		}
	}
	if asked != 1 || passed != 0 {
		t.Errorf("catalogs read %d and %d times", asked, passed)
	}
	for range 3 {
		s.checkNames(t, "", want)
	}
	if asked != 1 || passed != 1 {
		t.Errorf("catalogs read %d and %d times", asked, passed)
	}
}
