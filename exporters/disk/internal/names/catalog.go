package names

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Catalog lists services and operations, and keys and values of attributes. Safe for concurrent
// use.
type Catalog struct {
	store *scan.Store
	index atomic.Pointer[nameIndex]
	texts *textCache
}

var (
	_ tracestore.Catalog          = (*Catalog)(nil)
	_ tracestore.AttributeCatalog = (*Catalog)(nil)
)

// New returns a Catalog for a store.
func New(s *scan.Store) *Catalog {
	return &Catalog{store: s, texts: newTextCache(s.Options.Memory / 2)}
}

// Services implements tracestore.Catalog.
func (c *Catalog) Services(ctx context.Context, tenant string, q tracestore.NameQuery) (names []string, more bool, err error) {
	s := c.store.Begin()
	defer s.Release()
	n, rest, err := c.indexOf(ctx, s)
	if err != nil {
		return nil, false, err
	}
	var known []string
	if t := n.tenants[tenant]; t != nil {
		known = t.sorted
	}
	l := newList(s, q.Prefix, s.Options.MaxValues)
	last := "" // shapes of a service often follow each other
	err = eachShape(ctx, s, rest, tenant, func(_ int, _ *rows.Tables, _ uint32, shape *rows.Shape) {
		if shape.Service == last {
			return
		}
		last = shape.Service
		if _, ok := slices.BinarySearch(known, last); !ok {
			l.add(last)
		}
	})
	if err != nil {
		return nil, false, err
	}
	out := slices.Concat(known, l.sorted())
	if len(out) > len(known) {
		slices.Sort(out)
	}
	q.Limit = limit(s, q.Limit)
	names, more = storequery.SelectServices(out, q)
	return names, more, nil
}

// Operations implements tracestore.Catalog. If the names of a service are too many for the catalog
// and are stored in rows, it lists those of the newest spans.
func (c *Catalog) Operations(
	ctx context.Context, tenant, service, kind string, q tracestore.NameQuery,
) (ops []tracestore.Operation, more bool, err error) {
	s := c.store.Begin()
	defer s.Release()
	n, rest, err := c.indexOf(ctx, s)
	if err != nil {
		return nil, false, err
	}
	l := &operations{kind: kind, max: s.Options.MaxValues + 1}
	if known := n.service(tenant, service); known != nil {
		l.known = known
		if known.inRows {
			rest = allSources(s)
		}
	}
	if err := addOperations(ctx, s, rest, tenant, service, l); err != nil {
		return nil, false, err
	}
	q.Limit = limit(s, q.Limit)
	ops, more = storequery.SelectOperations(l.sorted(), q)
	return ops, more, nil
}

// limit returns the maximum length of a list, given that of a query.
func limit(s *scan.Session, asked int) int {
	if asked <= 0 {
		return s.Options.MaxValues
	}
	return min(asked, s.Options.MaxValues)
}
