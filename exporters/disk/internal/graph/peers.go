package graph

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Peers implements tracestore.Peers.
//
//	rows of the window          spans that name a peer and that nothing in their source answers
//	orphans of all sources      filter ──▶ not in it: counted      in it: a suspect
//	once more, for suspects     those that are a parent after all are dropped, the others counted
//
// Whatever answers a span from another source is an orphan there. There may be millions of those, of any time, so that they are not kept:
// the filter takes some bits for each, and few suspects are innocent.
func (e *Builder) Peers(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	first, last, ok := tracestore.Query{From: from, To: to}.Window()
	if !ok || ctx.Err() != nil {
		return tracestore.Graph{Complete: true}, ctx.Err()
	}
	s := e.store.Begin()
	defer s.Release()
	p := newPeerReader(s, tenant, scan.Range{From: first, To: last})
	if err := p.run(ctx); err != nil {
		return tracestore.Graph{}, err
	}
	if p.names.full {
		p.sums.MarkIncomplete()
	}
	g := p.sums.Graph()
	g.Reason = scan.JoinReasons(p.reader.session.DamageReason(), g.Reason)
	g.Complete = g.Reason == ""
	return g, nil
}

// peerReader counts the calls of a tenant to peers.
type peerReader struct {
	reader    *callReader
	sums      storequery.PeerCounter
	leaves    storequery.PeerCallFinder
	names     *peerNames
	filter    *parentFilter
	uncertain []uncertainCall
}

// suspect is a span that nothing answers in its source, and something may answer elsewhere.
type uncertainCall struct {
	key  parentKey
	span storequery.CallSpan
}

// maxSuspects is how many suspects are gathered before they are looked into: some 12 MiB.
const maxUncertain = 1 << 16

func newPeerReader(s *scan.Session, tenant string, w scan.Range) *peerReader {
	p := &peerReader{reader: &callReader{session: s, tenant: tenant, from: w.From, to: w.To}, names: newPeerNames()}
	p.reader.peers = p
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
	return p.resolveUncertain(ctx)
}

// scanAll counts the calls of the spans that start within the window, and gathers suspects.
func (p *peerReader) scanAll(ctx context.Context) error {
	w := scan.Window{{From: p.reader.from, To: p.reader.to}}
	for src := range p.reader.session.Sources {
		if n, oldest, newest := p.reader.session.Sources[src].Bounds(); n == 0 || newest < p.reader.from || oldest > p.reader.to {
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
	for _, src := range p.reader.session.Sources {
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
	for src := range p.reader.session.Sources {
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
			if o.Tenant == p.reader.tenant {
				f(parentKey{o.TraceID, o.ParentID})
			}
		}
	}
	return nil
}

// orphansOf returns the orphans of a source, and nil where they are not known: where they are damaged, which costs no spans, or not all had
// room.
func (p *peerReader) orphansOf(ctx context.Context, src int) (orphans *stats.OrphanStats, _ error) {
	s, ok := p.reader.session.Sources[src].(source.Statistics)
	if !ok {
		return nil, nil
	}
	err := p.reader.session.Decode(ctx, func() (err error) {
		orphans, err = s.Orphans()
		return err
	})
	if d := (*source.DamageError)(nil); errors.As(err, &d) {
		p.reader.session.ReportDamage(d)
		return nil, nil
	}
	if err != nil || orphans.Dropped > 0 {
		return nil, err
	}
	return orphans, nil
}

// eachParentOfRows calls f with the parents of all spans of a source.
func (p *peerReader) eachParentOfRows(ctx context.Context, src int, f func(parentKey)) error {
	t, err := p.reader.session.Tables(src)
	if err != nil || t == nil {
		return err
	}
	blocks, err := p.reader.session.Blocks(src)
	if err != nil {
		return err
	}
	for i := range blocks {
		err := p.reader.session.OpenBlock(ctx, src, i, func(b source.Block) error { return p.parentsOf(src, t, b, f) })
		if err = p.reader.session.NoteDamage(src, scan.BlockPart(i), blocks[i].Rows, err); err != nil {
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
			ours, err = p.reader.belongsToTenant(t, h.Shape)
		}
		if err != nil {
			if err = p.reader.session.NoteDamage(src, scan.TracePart(h.TraceID), 1, err); err != nil {
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
func (p *peerReader) count(id otlpdata.TraceID, w scan.Window, spans []storequery.CallSpan) {
	p.leaves.Each(spans, func(s *storequery.CallSpan) {
		if w.Contains(s.Start) {
			p.add(id, s)
		}
	})
}

// add takes a span that nothing in its source answers.
func (p *peerReader) add(id otlpdata.TraceID, s *storequery.CallSpan) {
	if key := (parentKey{id, s.ID}); p.filter.mayHave(key) {
		p.uncertain = append(p.uncertain, uncertainCall{key, *s})
		return
	}
	p.sums.AddCall(s)
}

// clearMany is clear as soon as there are many suspects.
func (p *peerReader) resolveIfMany(ctx context.Context) error {
	if len(p.uncertain) < maxUncertain {
		return nil
	}
	return p.resolveUncertain(ctx)
}

// clear counts the suspects that nothing answers, and forgets all.
func (p *peerReader) resolveUncertain(ctx context.Context) error {
	if len(p.uncertain) == 0 {
		return nil
	}
	answered := make(map[parentKey]bool, len(p.uncertain))
	for i := range p.uncertain {
		answered[p.uncertain[i].key] = false
	}
	err := p.eachParent(ctx, func(k parentKey) {
		if _, suspected := answered[k]; suspected {
			answered[k] = true
		}
	})
	if err != nil {
		return err
	}
	for i := range p.uncertain {
		if s := &p.uncertain[i]; !answered[s.key] {
			p.sums.AddCall(&s.span)
		}
	}
	p.uncertain = p.uncertain[:0]
	return nil
}
