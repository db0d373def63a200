package search

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var _ tracestore.Peers = (*Engine)(nil)

// Peers implements tracestore.Peers.
//
//	rows of the window          spans that name a peer and that nothing in their source answers
//	orphans of all sources      filter ──▶ not in it: counted      in it: a suspect
//	once more, for suspects     those that are a parent after all are dropped, the others counted
//
// Whatever answers a span from another source is an orphan there. There may be millions of those, of any time, so that they are not kept:
// the filter takes some bits for each, and few suspects are innocent.
func (e *Engine) Peers(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	first, last, ok := tracestore.Query{From: from, To: to}.Window()
	if !ok || ctx.Err() != nil {
		return tracestore.Graph{Complete: true}, ctx.Err()
	}
	s := e.begin()
	defer s.lease.release()
	p := newPeerReader(s, tenant, bounds{first, last})
	if err := p.run(ctx); err != nil {
		return tracestore.Graph{}, err
	}
	if p.names.full {
		p.sums.MarkIncomplete()
	}
	g := p.sums.Graph()
	g.Reason = joinReasons(p.damage.reason(), g.Reason)
	g.Complete = g.Reason == ""
	return g, nil
}

// peerReader counts the calls of a tenant to peers.
type peerReader struct {
	*callReader
	sums     storequery.PeerCounter
	leaves   storequery.PeerCallFinder
	names    *peerNames
	filter   *parentFilter
	suspects []suspect
}

// suspect is a span that nothing answers in its source, and something may answer elsewhere.
type suspect struct {
	key  parentKey
	span storequery.CallSpan
}

// maxSuspects is how many suspects are gathered before they are looked into: some 12 MiB.
const maxSuspects = 1 << 16

func newPeerReader(s *session, tenant string, w bounds) *peerReader {
	p := &peerReader{callReader: &callReader{session: s, tenant: tenant, from: w.from, to: w.to}, names: newPeerNames()}
	p.peers = p
	return p
}

func (p *peerReader) run(ctx context.Context) error {
	p.filter = newParentFilter(p.expected())
	if err := p.eachParent(ctx, p.filter.add); err != nil {
		return err
	}
	if err := p.scanAll(ctx); err != nil {
		return err
	}
	return p.clear(ctx)
}

// scanAll counts the calls of the spans that start within the window, and gathers suspects.
func (p *peerReader) scanAll(ctx context.Context) error {
	w := window{{p.from, p.to}}
	for src := range p.sources {
		if n, oldest, newest := p.sources[src].Bounds(); n == 0 || newest < p.from || oldest > p.to {
			continue
		}
		if err := p.scanPeers(ctx, src, w); err != nil {
			return err
		}
	}
	return nil
}

// expected is how many parents are in the filter, about.
func (p *peerReader) expected() (n int) {
	const rowsPerOrphan = 64
	for _, src := range p.sources {
		if rows, _, _ := src.Bounds(); isCounted(src) {
			n += rows / rowsPerOrphan
		} else {
			n += rows
		}
	}
	return n
}

func isCounted(src source.Source) bool {
	_, ok := src.(source.Statistics)
	return ok
}

// eachParent calls f with the parents of all orphans, and of other spans that are in sources without statistics. Damage is noted.
func (p *peerReader) eachParent(ctx context.Context, f func(parentKey)) error {
	for src := range p.sources {
		if err := ctx.Err(); err != nil {
			return err
		}
		orphans, err := p.orphansOf(ctx, src)
		if err != nil {
			return err
		}
		if orphans == nil {
			if err := p.eachParentOfRows(ctx, src, f); err != nil {
				return err
			}
			continue
		}
		for o := range orphans.Orphans(0, math.MaxUint64) {
			if o.Tenant == p.tenant {
				f(parentKey{o.TraceID, o.ParentID})
			}
		}
	}
	return nil
}

// orphansOf returns the orphans of a source, and nil where they are not known: where they are damaged, which costs no spans, or not all had
// room.
func (p *peerReader) orphansOf(ctx context.Context, src int) (orphans *stats.OrphanStats, _ error) {
	s, ok := p.sources[src].(source.Statistics)
	if !ok {
		return nil, nil
	}
	err := p.decode(ctx, func() (err error) {
		orphans, err = s.Orphans()
		return err
	})
	if d := (*source.DamageError)(nil); errors.As(err, &d) {
		p.damage.report(d)
		return nil, nil
	}
	if err != nil || orphans.Dropped > 0 {
		return nil, err
	}
	return orphans, nil
}

// eachParentOfRows calls f with the parents of all spans of a source.
func (p *peerReader) eachParentOfRows(ctx context.Context, src int, f func(parentKey)) error {
	t, err := p.tablesOf(src)
	if err != nil || t == nil {
		return err
	}
	blocks, err := p.blocksOf(src)
	if err != nil {
		return err
	}
	for i := range blocks {
		err := p.open(ctx, src, i, func(b source.Block) error { return p.parentsOf(src, t, b, f) })
		if err = p.damage.note(p.sources[src], blockName(i), blocks[i].Rows, err); err != nil {
			return err
		}
	}
	return nil
}

func (p *peerReader) parentsOf(src int, t *rows.Tables, b source.Block, f func(parentKey)) error {
	var h rows.Head
	for row := range b.Len() {
		err := b.Head(row, &h)
		ours := false
		if err == nil {
			ours, err = p.ours(t, h.Shape)
		}
		if err != nil {
			if err = p.damage.note(p.sources[src], partOfTrace(h.TraceID), 1, err); err != nil {
				return err
			}
			continue
		}
		if ours && !h.ParentID.IsZero() {
			f(parentKey{h.TraceID, h.ParentID})
		}
	}
	return nil
}

// count counts those of the spans that a source has of a trace.
func (p *peerReader) count(id otlpdata.TraceID, w window, spans []storequery.CallSpan) {
	p.leaves.Each(spans, func(s *storequery.CallSpan) {
		if w.has(s.Start) {
			p.add(id, s)
		}
	})
}

// add takes a span that nothing in its source answers.
func (p *peerReader) add(id otlpdata.TraceID, s *storequery.CallSpan) {
	if key := (parentKey{id, s.ID}); p.filter.mayHave(key) {
		p.suspects = append(p.suspects, suspect{key, *s})
		return
	}
	p.sums.AddCall(s)
}

// clearMany is clear as soon as there are many suspects.
func (p *peerReader) clearMany(ctx context.Context) error {
	if len(p.suspects) < maxSuspects {
		return nil
	}
	return p.clear(ctx)
}

// clear counts the suspects that nothing answers, and forgets all.
func (p *peerReader) clear(ctx context.Context) error {
	if len(p.suspects) == 0 {
		return nil
	}
	answered := make(map[parentKey]bool, len(p.suspects))
	for i := range p.suspects {
		answered[p.suspects[i].key] = false
	}
	err := p.eachParent(ctx, func(k parentKey) {
		if _, suspected := answered[k]; suspected {
			answered[k] = true
		}
	})
	if err != nil {
		return err
	}
	for i := range p.suspects {
		if s := &p.suspects[i]; !answered[s.key] {
			p.sums.AddCall(&s.span)
		}
	}
	p.suspects = p.suspects[:0]
	return nil
}
