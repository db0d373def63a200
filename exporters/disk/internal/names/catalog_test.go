package names

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

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
	addNamed(td, service, names...)
	return otlpdata.FromTraces(td, otlpdata.Meta{Tenant: tenant})
}

func addNamed(td ptrace.Traces, service string, names ...string) {
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", service)
	list := rs.ScopeSpans().AppendEmpty().Spans()
	for i, name := range names {
		s := list.AppendEmpty()
		s.SetTraceID([16]byte{byte(i), 1})
		s.SetName(name)
		s.SetKind(ptrace.SpanKindClient)
	}
}

// countedCatalog is a segment that counts how often its services are read.
type countedCatalog struct {
	*segment.Segment
	asked *int
	err   error
}

func (s countedCatalog) EachService(tenant, from string, visit func([]byte, bool) bool) error {
	*s.asked++
	return errors.Join(s.err, s.Segment.EachService(tenant, from, visit))
}

func (s realStore) checkNames(t *testing.T, tenant string, want map[string][]string) {
	t.Helper()
	services, _, err := s.Services(t.Context(), tenant, tracestore.NameQuery{})
	if err != nil || len(services) != len(want) || !slices.IsSorted(services) {
		t.Fatalf("services of %s are %q, %v; want the services of %v", tenant, services, err, want)
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

// TestNames checks that lists are kept until a segment is added or removed, that names disappear
// with the last segment that has them, and that names of memtables and of segments with damaged
// catalogs are listed.
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
	for range 2 {
		s.checkNames(t, "a", map[string][]string{"x": {"1", "2"}})
		s.checkNames(t, "b", map[string][]string{"x": {"9"}})
	}
	if want := 2 * (2 + 2*3); asked != want { // services and operations of three kinds, for two tenants
		t.Errorf("two catalogs read %d times, want %d", asked, want)
	}
	add(nil, named("a", "w", "2"))
	if _, err := s.Tables[1].Append(named("a", "x", "0", "2"), 0); err != nil {
		t.Fatal(err)
	}
	add(&source.DamageError{File: "f", Part: "catalog", Err: errors.New("rotten")}, named("a", "y", "3"))
	s.checkNames(t, "a", map[string][]string{"x": {"0", "1", "2"}, "w": {"2"}, "y": {"3"}})
	if reports == 0 || len(s.lists.lists) != 0 {
		t.Errorf("%d reports of damage; %d lists of damaged segments are kept", reports, len(s.lists.lists))
	}
	s.Segments = s.Segments[1:]
	s.checkNames(t, "a", map[string][]string{"x": {"0", "2"}, "w": {"2"}, "y": {"3"}})
	s.checkNames(t, "c", nil)
}

// TestOperationsInRows checks that names in rows are listed together with names of other segments,
// and that a list says so if it does not have all of them.
func TestOperationsInRows(t *testing.T) {
	s := newRealStore(t, 1, scan.Options{})
	var many []string
	for i := range 3000 {
		many = append(many, fmt.Sprintf("name %04d", i))
	}
	s.SegmentOf(t, named("", "x", many...))
	s.SegmentOf(t, named("", "x", "another"))
	inRows := false
	err := s.Segments[0].(source.Catalog).EachService("", "", func(_ []byte, missing bool) bool {
		inRows = missing
		return true
	})
	if err != nil || !inRows {
		t.Fatalf("test needs more names: %v", err)
	}
	s.checkNames(t, "", map[string][]string{"x": append([]string{"another"}, many...)})
	ops, more, err := s.Operations(t.Context(), "", "x", "", tracestore.NameQuery{Prefix: "name 29"})
	if err != nil || more || len(ops) != 100 {
		t.Errorf("%d operations with a prefix, more %t, %v", len(ops), more, err)
	}
}

// TestNamesWithoutMemory checks that names are correct if there is no memory to keep them.
func TestNamesWithoutMemory(t *testing.T) {
	s := newRealStore(t, 1, scan.Options{Memory: 1, MaxValues: 2})
	s.SegmentOf(t, named("", "x", "1", "2", "3"))
	for range 2 {
		s.checkNames(t, "", map[string][]string{"x": {"1", "2"}})
	}
	if len(s.lists.lists) > 0 || s.lists.memory != 0 {
		t.Error("lists were kept without memory")
	}
}

// TestNamesOfManySources compares lists, whole and in part, with what was sent, while segments are
// added and removed.
func TestNamesOfManySources(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	s := newRealStore(t, 1, scan.Options{Memory: 4000})
	var sent [][]string // by segment: the service and its operations
	for range 60 {
		if len(sent) > 5 || len(sent) > 0 && rng.IntN(3) == 0 {
			i := rng.IntN(len(sent))
			sent, s.Segments = slices.Delete(sent, i, i+1), slices.Delete(s.Segments, i, i+1)
		} else {
			names := []string{fmt.Sprint("service ", rng.IntN(30)), fmt.Sprint(rng.IntN(5)), fmt.Sprint(rng.IntN(5))}
			s.SegmentOf(t, named("", names[0], names[1:]...))
			sent = append(sent, names)
		}
		want, services := map[string][]string{}, []string{}
		for _, names := range sent {
			list := append(want[names[0]], names[1:]...)
			slices.Sort(list)
			want[names[0]], services = slices.Compact(list), append(services, names[0])
		}
		s.checkNames(t, "", want)
		slices.Sort(services)
		services = slices.Compact(services)
		for _, q := range []tracestore.NameQuery{{Limit: 1}, {Limit: 3}, {Prefix: "service 1"}, {Prefix: "service 2", Limit: 2}, {Prefix: "t"}} {
			var all []string
			for _, name := range services {
				if strings.HasPrefix(name, q.Prefix) {
					all = append(all, name)
				}
			}
			n := len(all)
			if q.Limit > 0 {
				n = min(n, q.Limit)
			}
			got, more, err := s.Services(t.Context(), "", q)
			if err != nil || !slices.Equal(got, all[:n]) || more != (n < len(all)) {
				t.Fatalf("%+v: %q, more %t, %v; want %q of %q", q, got, more, err, all[:n], all)
			}
		}
		if s.lists.memory > 4000 {
			t.Errorf("%d bytes of lists kept", s.lists.memory)
		}
	}
}

// transient is a source with a catalog but without statistics.
type transient struct{ source.Source }

func (p *transient) EachService(tenant, from string, visit func([]byte, bool) bool) error {
	return p.Source.(source.Catalog).EachService(tenant, from, visit)
}

func (p *transient) EachOperation(tenant, service, from string, visit func([]byte, string) bool) error {
	return p.Source.(source.Catalog).EachOperation(tenant, service, from, visit)
}

// TestNamesOfTransientSources checks that sources that differ in every view do not invalidate the
// lists of segments.
func TestNamesOfTransientSources(t *testing.T) {
	asked := 0
	s := newRealStore(t, 1, scan.Options{})
	s.SegmentOf(t, named("", "x", "1"))
	s.SegmentOf(t, named("", "y", "2"))
	s.Segments[0] = countedCatalog{s.Segments[0].(*segment.Segment), &asked, nil}
	inner := s.Segments[1]
	for range 5 {
		s.Segments[1] = &transient{inner}
		if l, _, err := s.Services(t.Context(), "", tracestore.NameQuery{}); err != nil || !slices.Equal(l, []string{"x", "y"}) {
			t.Fatal(l, err)
		}
	}
	if asked != 1 {
		t.Errorf("catalog read %d times", asked)
	}
}

// blockedCatalog is a segment whose services are read when proceed is closed.
type blockedCatalog struct {
	*segment.Segment
	asked   *int
	proceed chan struct{}
}

func (s blockedCatalog) EachService(tenant, from string, visit func([]byte, bool) bool) error {
	*s.asked++
	<-s.proceed
	return s.Segment.EachService(tenant, from, visit)
}

// TestConcurrentLists checks that concurrent queries for one list read a segment once, and that a
// query ends with its context while it waits.
func TestConcurrentLists(t *testing.T) {
	s := newRealStore(t, 1, scan.Options{})
	s.SegmentOf(t, named("", "x", "1"))
	inner, asked := s.Segments[0].(*segment.Segment), 0
	synctest.Test(t, func(t *testing.T) {
		s := realStore{s.Real, New(scan.NewStore(s.View, scan.Options{Decoders: 1}))} // with channels of the bubble
		proceed := make(chan struct{})
		s.Segments[0] = blockedCatalog{inner, &asked, proceed}
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				if l, _, err := s.Services(t.Context(), "", tracestore.NameQuery{}); err != nil || !slices.Equal(l, []string{"x"}) {
					t.Error(l, err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		for _, prefix := range []string{"", "x"} { // the same list, and one that waits for a decoder
			all.Go(func() {
				if _, _, err := s.Services(ctx, "", tracestore.NameQuery{Prefix: prefix}); !errors.Is(err, context.Canceled) {
					t.Errorf("canceled query: %v", err)
				}
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(proceed)
		all.Wait()
	})
	if asked != 1 {
		t.Errorf("segment read %d times", asked)
	}
}
