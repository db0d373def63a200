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

// Peers implements tracestore.Edges.
//
//	rows of the window         spans with a peer that no span in their source answers
//	parents of all sources     filter ──▶ not in it: counted    in it: uncertain
//	once more, if uncertain    counted unless the span is a parent
//
// If the counterpart of a call is in another source, the parent of that span is unresolved there.
// There may be millions of such parents, from any time, so their ids are not kept in memory. The
// filter needs a few bits for each, but its false positives make a few calls uncertain that have no
// counterpart.
func (b *Builder) Peers(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	first, last, ok := tracestore.Query{From: from, To: to}.Window()
	if !ok || ctx.Err() != nil {
		return tracestore.Graph{}, ctx.Err()
	}
	var sums storequery.PeerCounter
	reasons, err := b.readPeers(ctx, tenant, scan.Range{From: first, To: last}, &sums)
	if err != nil {
		return tracestore.Graph{}, err
	}
	g := sums.Graph()
	g.Reasons = append(reasons, g.Reasons...)
	return g, nil
}

// peerCounter counts calls to peers.
type peerCounter interface {
	AddPeer(s *storequery.CallSpan)
	MarkIncomplete()
}

// readPeers counts calls to the peers that [tracestore.Edges].Peers lists. If sums is an
// EdgeCounter, it also counts calls to hosts, for Edges. It returns the reasons if some calls are
// missing.
func (b *Builder) readPeers(ctx context.Context, tenant string, w scan.Range, sums peerCounter) (reasons tracestore.Reasons, _ error) {
	s := b.store.BeginQuery(ctx)
	defer s.Release()
	p := newPeerReader(s, tenant, w, sums)
	expected := p.expected()
	if err := s.Memory.Grow(batchMemory + parentFilterMemory(expected)); err != nil {
		return nil, err
	}
	p.filter = newParentFilter(expected)
	reasons, err := outOfMemory(p.run(ctx))
	if p.names.full {
		sums.MarkIncomplete()
	}
	return append(reasons, p.session.DamageReasons()...), err
}

// peerReader counts the calls of a tenant to peers.
type peerReader struct {
	session   *scan.Session
	reader    *callReader
	sums      peerCounter
	leaves    storequery.PeerCallFinder
	names     *peerNames
	filter    *parentFilter
	uncertain []uncertainCall
}

// uncertainCall is a call that has no counterpart in its own source but may have one in another.
type uncertainCall struct {
	key  parentKey
	span storequery.CallSpan
}

// maxUncertain is the number of uncertain calls that are collected before they are resolved. They
// take about 12 MiB.
const maxUncertain = 1 << 16

func newPeerReader(s *scan.Session, tenant string, w scan.Range, sums peerCounter) *peerReader {
	p := &peerReader{session: s, reader: &callReader{session: s, tenant: tenant, from: w.From, to: w.To}, sums: sums, names: newPeerNames()}
	if _, ok := sums.(*storequery.EdgeCounter); ok {
		p.names.find, p.names.peer = scan.FindEdgePeers, storequery.EdgePeerOf
	}
	p.reader.peers = p
	return p
}

func (p *peerReader) run(ctx context.Context) error {
	if err := p.eachParent(ctx, p.filter.add); err != nil {
		return err
	}
	if err := p.scanAll(ctx); err != nil {
		return err
	}
	return p.resolveUncertain(ctx)
}

// scanAll counts the calls of the spans that start within the window, and collects uncertain calls.
func (p *peerReader) scanAll(ctx context.Context) error {
	w := scan.Window{{From: p.reader.from, To: p.reader.to}}
	for src := range p.session.Sources {
		if n, oldest, newest := p.session.Sources[src].Bounds(); n == 0 || newest < p.reader.from || oldest > p.reader.to {
			continue
		}
		if err := p.scanPeers(ctx, src, w); err != nil {
			return err
		}
	}
	return nil
}

// expected returns the approximate number of parents in the filter.
func (p *peerReader) expected() (n int) {
	const rowsPerOrphan = 64
	for _, src := range p.session.Sources {
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

// eachParent calls f with all unresolved parents, and with other parents in sources without
// statistics. Damage is recorded.
func (p *peerReader) eachParent(ctx context.Context, f func(parentKey)) error {
	for src := range p.session.Sources {
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

// orphansOf returns the spans without a parent in a segment. It returns nil if these statistics are
// damaged, which loses no spans, or incomplete.
func (p *peerReader) orphansOf(ctx context.Context, src int) (orphans *stats.OrphanStats, _ error) {
	s, ok := p.session.Sources[src].(source.Statistics)
	if !ok {
		return nil, nil
	}
	err := p.session.Decode(ctx, func() (err error) {
		orphans, err = s.Orphans()
		return err
	})
	if d := (*source.DamageError)(nil); errors.As(err, &d) {
		p.session.ReportDamage(d)
		return nil, nil
	}
	if err != nil || orphans.Dropped > 0 {
		return nil, err
	}
	return orphans, nil
}

// eachParentOfRows calls f with the parents of all spans of a source.
func (p *peerReader) eachParentOfRows(ctx context.Context, src int, f func(parentKey)) error {
	t, err := p.session.Tables(src)
	if err != nil || t == nil {
		return err
	}
	blocks, err := p.session.Blocks(src)
	if err != nil {
		return err
	}
	for i := range blocks {
		err := p.session.OpenBlock(ctx, src, i, func(b source.Block) error { return p.parentsOf(src, t, b, f) })
		if err = p.session.NoteDamage(src, scan.BlockPart(i), blocks[i].Rows, err); err != nil {
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
			if err = p.session.NoteDamage(src, scan.TracePart(h.TraceID), 1, err); err != nil {
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

// count counts the calls to peers among a trace's spans in one source.
func (p *peerReader) count(id otlpdata.TraceID, w scan.Window, spans []storequery.CallSpan) {
	p.leaves.Each(spans, func(at int) {
		if s := &spans[at]; w.Contains(s.Start) {
			p.add(id, s)
		}
	})
}

// add counts a call without a counterpart in its source, or collects it if it is uncertain.
func (p *peerReader) add(id otlpdata.TraceID, s *storequery.CallSpan) {
	if key := (parentKey{id, s.ID}); p.filter.mayHave(key) {
		p.uncertain = append(p.uncertain, uncertainCall{key, *s})
		return
	}
	p.sums.AddPeer(s)
}

// resolveIfMany calls resolveUncertain if there are many uncertain calls.
func (p *peerReader) resolveIfMany(ctx context.Context) error {
	if len(p.uncertain) < maxUncertain {
		return nil
	}
	return p.resolveUncertain(ctx)
}

// resolveUncertain counts the uncertain calls without a counterpart, and then forgets all uncertain
// calls.
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
			p.sums.AddPeer(&s.span)
		}
	}
	p.uncertain = p.uncertain[:0]
	return nil
}
