package names

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// nameIndex has the names of several sources. It does not change and owns its texts.
type nameIndex struct {
	sources map[source.Source]bool // false: the catalog of the source is damaged and its names are missing
	tenants map[string]*tenantNames
	memory  int64 // approximate size in bytes
	// Sources without statistics that were seen for the first time. Some exist only for one view,
	// such as the rest of a memtable after a deletion. Their names are added when they are seen
	// again.
	deferred map[source.Source]bool
}

type tenantNames struct {
	services map[string]*serviceNames
	sorted   []string
}

type serviceNames struct {
	operations map[tracestore.Operation]struct{}
	sorted     []tracestore.Operation
	inRows     bool // there are other names, in rows
}

// service returns the names of a service, or nil.
func (n *nameIndex) service(tenant, service string) *serviceNames {
	if t := n.tenants[tenant]; t != nil {
		return t.services[service]
	}
	return nil
}

// indexOf returns the names of the sources with a catalog, and the numbers of the other sources. It
// keeps the index from call to call. If sources were added it reads their catalogs; if sources were
// removed it reads all catalogs again.
func (c *Catalog) indexOf(ctx context.Context, s *scan.Session) (_ *nameIndex, rest []int, _ error) {
	kept := c.index.Load()
	n, err := buildIndex(ctx, s, kept)
	if err != nil {
		return nil, nil, err
	}
	if n != kept && n.memory <= s.Options.Memory {
		c.index.Store(n)
	}
	for i, src := range s.Sources {
		if !n.sources[src] {
			rest = append(rest, i)
		}
	}
	return n, rest, nil
}

// buildIndex returns the names of the sources of a session. kept is the index of an earlier
// session, or nil.
func buildIndex(ctx context.Context, s *scan.Session, kept *nameIndex) (*nameIndex, error) {
	var fresh []source.Source
	strangers := make(map[source.Source]bool)
	known := 0
	for _, src := range s.Sources {
		if _, ok := src.(source.Catalog); !ok {
			continue
		}
		_, counted := src.(source.Statistics)
		switch {
		case kept.has(src):
			known++
		case counted || kept != nil && kept.deferred[src]:
			fresh = append(fresh, src)
		default:
			strangers[src] = true
		}
	}
	switch {
	case kept != nil && known < len(kept.sources):
		return buildIndex(ctx, s, &nameIndex{deferred: kept.deferred}) // an index without names of removed sources
	case kept != nil && len(fresh) == 0 && maps.Equal(strangers, kept.deferred):
		return kept, nil
	}
	n := kept.clone()
	for _, src := range fresh {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		list, err := src.(source.Catalog).Services()
		if d := (*source.DamageError)(nil); errors.As(err, &d) {
			s.ReportDamage(d) // no names are lost: the vocabulary has them, too
		} else if err != nil {
			return nil, err
		}
		n.sources[src] = err == nil
		n.add(list)
	}
	n.deferred = strangers
	n.sort()
	return n, nil
}

// has reports whether the catalog of a source was read.
func (n *nameIndex) has(src source.Source) bool {
	if n == nil {
		return false
	}
	_, ok := n.sources[src]
	return ok
}

// clone returns a copy to which names can be added.
func (n *nameIndex) clone() *nameIndex {
	if n == nil || n.sources == nil {
		return &nameIndex{sources: make(map[source.Source]bool), tenants: make(map[string]*tenantNames)}
	}
	out := &nameIndex{sources: maps.Clone(n.sources), tenants: make(map[string]*tenantNames, len(n.tenants)), memory: n.memory}
	for tenant, t := range n.tenants {
		services := make(map[string]*serviceNames, len(t.services))
		for name, s := range t.services {
			services[name] = &serviceNames{operations: maps.Clone(s.operations), inRows: s.inRows}
		}
		out.tenants[tenant] = &tenantNames{services: services}
	}
	return out
}

func (n *nameIndex) add(list []source.Service) {
	const ofMap = 2 // factor for the overhead of maps and lists
	for i := range list {
		t := n.tenants[list[i].Tenant]
		if t == nil {
			t = &tenantNames{services: make(map[string]*serviceNames)}
			n.tenants[strings.Clone(list[i].Tenant)] = t
		}
		s := t.services[list[i].Name]
		if s == nil {
			s = &serviceNames{operations: make(map[tracestore.Operation]struct{})}
			t.services[strings.Clone(list[i].Name)] = s
			n.memory += int64(len(list[i].Name)) + ofMap*int64(unsafe.Sizeof(*s))
		}
		s.inRows = s.inRows || list[i].NamesInRows
		for _, o := range list[i].Operations {
			op := displayOperation(o.Name, o.Kind)
			if _, known := s.operations[op]; !known {
				op.Name = strings.Clone(op.Name)
				s.operations[op] = struct{}{}
				n.memory += int64(len(op.Name)) + ofMap*int64(unsafe.Sizeof(op))
			}
		}
	}
}

// sort fills the sorted lists.
func (n *nameIndex) sort() {
	for _, t := range n.tenants {
		t.sorted = slices.Sorted(maps.Keys(t.services))
		for _, s := range t.services {
			s.sorted = slices.SortedFunc(maps.Keys(s.operations), compareOperations)
		}
	}
}

// displayOperation returns an operation as it is listed, from the name and kind that were sent.
func displayOperation(name string, kind int32) tracestore.Operation {
	s := otlpdata.Span{Name: name, Kind: kind}
	return tracestore.Operation{Name: s.Operation(), Kind: s.KindName()}
}

func compareOperations(a, b tracestore.Operation) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
}
