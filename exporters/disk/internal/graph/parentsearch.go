package graph

import (
	"context"
	"slices"
	"sort"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// nearbySpans returns the part of byTime with spans of about the same time as a source.
func (r *parentResolver) nearbySpans(src int) (from, to int) {
	n, oldest, newest := r.reader.session.Sources[src].Bounds()
	if n == 0 {
		return 0, 0
	}
	first, last := stats.MinuteOf(oldest), stats.MinuteOf(newest)+nearMinutes
	first -= min(first, nearMinutes)
	from = sort.Search(len(r.byTime), func(i int) bool { return r.byTime[i].minute() >= first })
	to = sort.Search(len(r.byTime), func(i int) bool { return r.byTime[i].minute() > last })
	return from, to
}

// searchSource searches for parents in a source. Damage is recorded.
func (r *parentResolver) searchSource(ctx context.Context, src int, lists ...[]timeIndex) error {
	r.ids = r.ids[:0]
	for i := range r.byTrace {
		r.byTrace[i].searchedIn = 0
	}
	for _, list := range lists {
		for i := range list {
			o := &r.reader.unresolved[list[i].index()]
			if f := &r.byTrace[o.traceAt]; f.searchedIn != int32(src)+1 && !o.resolved && o.src != src && r.shouldSearch(o, src) {
				f.searchedIn = int32(src) + 1
				r.ids = append(r.ids, o.trace)
			}
		}
	}
	if err := ctx.Err(); err != nil || len(r.ids) == 0 {
		return err
	}
	if c := source.ClustersOf(r.reader.session.Sources[src]); c != nil {
		return r.searchBlocks(ctx, src, c)
	}
	t, err := r.reader.session.Tables(src)
	if err != nil || t == nil {
		return err
	}
	for some := range slices.Chunk(r.ids, scan.TracesPerDecode) {
		err := r.reader.session.Decode(ctx, func() error {
			for _, id := range some {
				err := r.reader.eachSpan(ctx, src, t, id, func(_ source.Block, _ int, _ *rows.Head, s *storequery.CallSpan) error {
					r.add(src, id, s)
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// searchBlocks opens each block that may have rows of the traces once.
func (r *parentResolver) searchBlocks(ctx context.Context, src int, c source.Clusters) error {
	blocks, err := c.TraceBlocks(r.reader.tenant, r.ids)
	if err == nil && len(blocks) == 0 {
		return nil
	}
	t, tablesErr := r.reader.session.Tables(src)
	if tablesErr != nil || t == nil {
		return tablesErr
	}
	if err != nil {
		infos, err := r.reader.session.Blocks(src)
		if err != nil {
			return err
		}
		blocks = blocks[:0]
		for i := range infos {
			blocks = append(blocks, i)
		}
	}
	for _, i := range blocks {
		err := r.reader.session.OpenBlock(ctx, src, i, func(b source.Block) error { return r.searchRows(src, t, b) })
		if err = r.reader.session.NoteDamage(src, scan.BlockPart(i), 0, err); err != nil {
			return err
		}
	}
	return nil
}

// idBlock is a block that reads ids faster than Head.
type idBlock interface {
	source.Block
	Traces() ([]block.Trace, error)
	SpanID(row int) (otlpdata.SpanID, error)
	IsOwnParent(row int) (bool, error)
}

var _ idBlock = (*block.Block)(nil)

// searchRows searches for parents in a block. If possible, it reads only rows of the traces in
// question.
func (r *parentResolver) searchRows(src int, t *rows.Tables, b source.Block) error {
	brief, ok := b.(idBlock)
	if !ok {
		return r.searchAllRows(src, t, b)
	}
	traces, err := brief.Traces()
	if err != nil {
		return err
	}
	for i := range traces {
		if f := r.traceParents(traces[i].ID); f != nil && f.searchedIn == int32(src)+1 {
			if err := r.searchTrace(src, t, brief, &traces[i], f); err != nil {
				return err
			}
		}
	}
	return nil
}

// searchTrace searches for the parents of a trace among its rows.
func (r *parentResolver) searchTrace(src int, t *rows.Tables, b idBlock, of *block.Trace, f *traceParents) error {
	for row := int(of.First); row < int(of.First+of.Rows); row++ {
		id, err := b.SpanID(row)
		if err != nil {
			return err
		}
		at := r.parentIndex(f, id)
		if at < 0 {
			continue
		}
		var s storequery.CallSpan
		ours, err := r.reader.parentSpan(t, b, row, id, &s)
		if err != nil {
			return err
		}
		if ours {
			r.addAt(src, at, &s)
		}
	}
	return nil
}

// parentSpan reads the fields of a row that chooseParent and maybeSameSpan compare. It omits the
// duration, and the parent unless the span is its own parent.
func (c *callReader) parentSpan(t *rows.Tables, b idBlock, row int, id otlpdata.SpanID, s *storequery.CallSpan) (bool, error) {
	shapes, err := b.Shapes()
	if err != nil {
		return false, err
	}
	if ours, err := c.belongsToTenant(t, shapes[row]); !ours {
		return false, err
	}
	own, err := b.IsOwnParent(row)
	if err != nil {
		return false, err
	}
	if own {
		var h rows.Head
		return c.callSpan(t, b, row, &h, s)
	}
	starts, err := b.Starts()
	if err != nil {
		return false, err
	}
	shape := &t.Shapes[shapes[row]]
	*s = storequery.CallSpan{ID: id, Start: starts[row], Service: shape.Service, Kind: shape.Kind,
		Connection: c.connection(t, shapes[row]), Failed: shape.Status == otlpdata.StatusError}
	return true, nil
}

// traceParents returns the parents of a trace, or nil.
func (r *parentResolver) traceParents(id otlpdata.TraceID) *traceParents {
	if i, ok := r.traceIndex[id]; ok {
		return &r.byTrace[i]
	}
	return nil
}

// searchAllRows searches for parents among all rows of a block.
func (r *parentResolver) searchAllRows(src int, t *rows.Tables, b source.Block) error {
	var h rows.Head
	var s storequery.CallSpan
	for row := range b.Len() {
		if err := b.Head(row, &h); err != nil {
			return err
		}
		f := r.traceParents(h.TraceID)
		if f == nil || r.parentIndex(f, h.SpanID) < 0 {
			continue
		}
		ours, err := r.reader.callSpan(t, b, row, &h, &s)
		if err != nil {
			return err
		}
		if ours {
			r.add(src, h.TraceID, &s)
		}
	}
	return nil
}

// add adds a span to the candidates of the parent with its id.
func (r *parentResolver) add(src int, id otlpdata.TraceID, s *storequery.CallSpan) {
	f := r.traceParents(id)
	if f == nil {
		return
	}
	if at := r.parentIndex(f, s.ID); at >= 0 {
		r.addAt(src, at, s)
	}
}

// addAt adds a span to the candidates of a parent.
func (r *parentResolver) addAt(src, at int, s *storequery.CallSpan) {
	if c := (parentCandidate{src, *s}); len(r.candidates[at]) < storequery.MaxSameID && !slices.Contains(r.candidates[at], c) {
		r.candidates[at] = append(r.candidates[at], c)
	}
}
