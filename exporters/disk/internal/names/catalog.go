package names

import (
	"context"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Catalog lists services and operations, and keys and values of attributes. It is safe for
// concurrent use.
type Catalog struct {
	store   *scan.Store
	lists   *listCache // of the names in segments
	answers *listCache // of the names in all sources
	texts   *textCache
}

var _ tracestore.Catalog = (*Catalog)(nil)

// New returns a Catalog for a store.
func New(s *scan.Store) *Catalog {
	memory := s.Options.Memory / 2
	return &Catalog{store: s, lists: newListCache(memory), answers: newListCache(memory), texts: newTextCache(memory)}
}

// Services implements tracestore.Catalog.
func (c *Catalog) Services(ctx context.Context, tenant string, q tracestore.NameQuery) (names []string, more bool, err error) {
	s := c.store.Begin()
	defer s.Release()
	l, err := c.list(ctx, s, listKey{tenant: tenant, query: q}, addServices)
	if err != nil {
		return nil, false, err
	}
	return l.names, l.more(), s.Damaged()
}

// Operations implements tracestore.Catalog. If a service has too many names for the catalog of a
// source, which then stores them in rows, it lists the names of the newest spans.
func (c *Catalog) Operations(
	ctx context.Context, tenant, service, kind string, q tracestore.NameQuery,
) (ops []tracestore.Operation, more bool, err error) {
	s := c.store.Begin()
	defer s.Release()
	l, err := c.list(ctx, s, listKey{tenant: tenant, service: service, kind: kind, query: q}, addOperations)
	if err != nil {
		return nil, false, err
	}
	return l.first(), l.more(), s.Damaged()
}

// adder adds the names in the catalog of a source to a list.
type adder func(ctx context.Context, s *scan.Session, src int, k listKey, l *nameList) error

// list returns a list with the names in all sources. add adds the names of one source; if it
// returns damage, list reports the damage and takes the names from the vocabulary. The list must
// not be modified.
func (c *Catalog) list(ctx context.Context, s *scan.Session, k listKey, add adder) (*nameList, error) {
	k.query.Limit = limit(s, k.query.Limit)
	return c.answers.get(ctx, s.Sources, allSources(s), k, func() (*nameList, error) {
		segments, rest := split(s)
		kept, err := c.listOf(ctx, s, segments, k, add)
		if err != nil {
			return nil, err
		}
		l := kept.clone()
		err = s.Decode(ctx, func() error { return addAll(ctx, s, rest, k, l, add) })
		if err == nil && len(l.incomplete) > 0 {
			err = addFromRows(ctx, s, k, l)
		}
		l.brief = l.brief || s.DamagedParts() > 0
		l.complete(k)
		return l, err
	})
}

// listOf returns a list with the names in segments. Few lists are made at the same time, because
// making one takes memory.
func (c *Catalog) listOf(ctx context.Context, s *scan.Session, segments []int, k listKey, add adder) (*nameList, error) {
	return c.lists.get(ctx, s.Sources, segments, k, func() (*nameList, error) {
		l := newNameList(k.query)
		err := s.Decode(ctx, func() error { return addAll(ctx, s, segments, k, l, add) })
		l.brief = l.brief || s.DamagedParts() > 0
		return l, err
	})
}

// addAll adds the names in some sources.
func addAll(ctx context.Context, s *scan.Session, sources []int, k listKey, l *nameList, add adder) error {
	for _, src := range sources {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, ok := s.Sources[src].(source.Catalog); ok {
			err := add(ctx, s, src, k, l)
			if d := damageOf(err); d != nil {
				s.ReportDamage(d) // no names are lost: the vocabulary has them as well
				l.brief = true
			} else if err != nil {
				return err
			} else {
				continue
			}
		}
		if err := addVocabulary(ctx, s, src, k, l); err != nil {
			return err
		}
	}
	return nil
}

// split returns the numbers of the sources whose names may be cached, and of the others. Some
// sources exist only for one view, such as the rest of a memtable after a deletion; they have no
// statistics.
func split(s *scan.Session) (segments, rest []int) {
	for i, src := range s.Sources {
		_, listed := src.(source.Catalog)
		_, counted := src.(source.Statistics)
		if listed && counted {
			segments = append(segments, i)
		} else {
			rest = append(rest, i)
		}
	}
	return segments, rest
}

// limit returns the maximum length of a list, given the limit of a query.
func limit(s *scan.Session, asked int) int {
	if asked <= 0 {
		return s.Options.MaxValues
	}
	return min(asked, s.Options.MaxValues)
}

// addServices adds the services in the catalog of a source.
func addServices(ctx context.Context, s *scan.Session, src int, k listKey, l *nameList) error {
	c := s.Sources[src].(source.Catalog)
	return l.merge(ctx, func(visit func(name []byte, kind string) bool) error {
		return c.EachService(k.tenant, k.query.Prefix, func(name []byte, _ bool) bool { return visit(name, "") })
	})
}

// addOperations adds the operations of a service in the catalog of a source.
func addOperations(ctx context.Context, s *scan.Session, src int, k listKey, l *nameList) error {
	c := s.Sources[src].(source.Catalog)
	known, missing := false, false
	err := c.EachService(k.tenant, k.service, func(name []byte, lacks bool) bool {
		known, missing = string(name) == k.service, lacks
		return false
	})
	if err != nil || !known {
		return err
	}
	if missing {
		l.incomplete = append(l.incomplete, identityOf(s.Sources[src]))
	}
	return l.merge(ctx, func(visit func(name []byte, kind string) bool) error {
		return c.EachOperation(k.tenant, k.service, k.query.Prefix, func(name []byte, kind string) bool {
			if k.kind != "" && kind != k.kind {
				return true
			}
			return visit(name, kind)
		})
	})
}

// addVocabulary adds the services, or operations, in the vocabulary of a source.
func addVocabulary(ctx context.Context, s *scan.Session, src int, k listKey, l *nameList) error {
	fresh := newFreshNames(l)
	err := eachShape(ctx, s, []int{src}, k.tenant, fresh.shape(k))
	if err != nil {
		return err
	}
	if fresh.inRows {
		l.incomplete = append(l.incomplete, identityOf(s.Sources[src]))
	}
	return l.merge(ctx, fresh.each)
}

// addFromRows adds operations that the catalogs of some sources lack: from their vocabularies and,
// for names in rows, from the newest spans.
func addFromRows(ctx context.Context, s *scan.Session, k listKey, l *nameList) error {
	fresh := newFreshNames(l)
	sc := newShapeScan(s)
	var sources []int
	for i, src := range s.Sources {
		if slices.Contains(l.incomplete, identityOf(src)) {
			sources = append(sources, i)
		}
	}
	if err := eachShape(ctx, s, sources, k.tenant, fresh.wantRows(sc, k)); err != nil {
		return err
	}
	sc.left = maxNameRows
	if err := sc.run(ctx, fresh.row(k)); err != nil {
		return err
	}
	l.cut = l.cut || sc.left <= 0
	return l.merge(ctx, fresh.each)
}
