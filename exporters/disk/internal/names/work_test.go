package names

import (
	"fmt"
	"runtime"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// workload counts the names that a segment lists.
type workload struct {
	*segment.Segment
	visited *int
}

func (s workload) EachService(tenant, from string, visit func([]byte, bool) bool) error {
	return s.Segment.EachService(tenant, from, func(name []byte, missing bool) bool {
		*s.visited++
		return visit(name, missing)
	})
}

func (s workload) EachOperation(tenant, service, from string, visit func([]byte, string) bool) error {
	return s.Segment.EachOperation(tenant, service, from, func(name []byte, kind string) bool {
		*s.visited++
		return visit(name, kind)
	})
}

// TestWorkOfLists checks that the work for a list, in names that are read and in bytes that are
// allocated, depends on the length of the list and the number of segments, but not on the number of
// stored names.
func TestWorkOfLists(t *testing.T) {
	const segments, services = 8, 1000 // services of each segment; every segment has others
	s := newRealStore(t, 1, scan.Options{})
	visited := 0
	for i := range segments {
		td := ptrace.NewTraces()
		for j := range services {
			addNamed(td, fmt.Sprintf("service %05d", j*segments+i), "a", "b")
		}
		s.SegmentOf(t, otlpdata.FromTraces(td, otlpdata.Meta{Tenant: "large"}), named("small", "one", "x"))
		s.Segments[i] = workload{s.Segments[i].(*segment.Segment), &visited}
	}
	allocated := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.TotalAlloc
	}
	list := func(tenant string, q tracestore.NameQuery) func() (int, bool, error) {
		return func() (int, bool, error) {
			l, more, err := s.Services(t.Context(), tenant, q)
			return len(l), more, err
		}
	}
	for _, c := range []struct {
		name          string
		list          func() (listed int, more bool, err error)
		listed        int
		more          bool
		names, memory int // maximum
	}{
		{"first", list("large", tracestore.NameQuery{Limit: 100}), 100, true, 102 * segments, 256 << 10},
		{"prefix", list("large", tracestore.NameQuery{Prefix: "service 0777", Limit: 50}), 10, false, 20 + 2*segments, 256 << 10},
		{"last", list("large", tracestore.NameQuery{Prefix: "service 07999"}), 1, false, 2 * segments, 256 << 10},
		{"small tenant", list("small", tracestore.NameQuery{}), 1, false, segments, 256 << 10},
		{"unknown tenant", list("none", tracestore.NameQuery{}), 0, false, 0, 256 << 10},
		{"operations", func() (int, bool, error) {
			l, more, err := s.Operations(t.Context(), "large", "service 07777", "", tracestore.NameQuery{})
			return len(l), more, err
		}, 2, false, 4 + 2*segments, 256 << 10},
	} {
		if _, _, err := c.list(); err != nil { // loads the directories of names
			t.Fatal(err)
		}
		s.Catalog = New(scan.NewStore(s.View, scan.Options{}))
		visited = 0
		before := allocated()
		listed, more, err := c.list()
		memory := allocated() - before
		if err != nil || listed != c.listed || more != c.more {
			t.Errorf("%s: %d names, more %t, %v", c.name, listed, more, err)
		}
		if visited > c.names || memory > uint64(c.memory) {
			t.Errorf("%s: %d names read, want at most %d; %d bytes allocated, want at most %d", c.name, visited, c.names, memory, c.memory)
		}
		visited = 0
		if _, _, err := c.list(); err != nil || visited > 0 {
			t.Errorf("%s: %d names reread, %v", c.name, visited, err)
		}
	}
}
