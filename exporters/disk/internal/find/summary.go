package find

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// maxPrefetchedHeads is the maximum number of spans in prefetchedHeads. It takes about as much
// memory as prefetched.
const maxPrefetchedHeads = 20_000

// prefetchedHeads holds the heads of the spans of several traces, for summaries. They are read
// together, so that each block is decoded once.
type prefetchedHeads struct {
	ids   []otlpdata.TraceID
	lists [maxPrefetch][]tracestore.SummarySpan // by index in ids; nil: taken, or too long
	spans int
}

// headMemory is the approximate size in bytes of a span in a list of heads, with its name and the
// memory to summarize it.
const headMemory = int64(unsafe.Sizeof(tracestore.SummarySpan{})) + 64

// freeHeads releases the memory of a list of heads.
func (r *traceReader) freeHeads(list []tracestore.SummarySpan) {
	_ = r.session.Memory.Grow(-int64(cap(list)) * headMemory) // cannot fail
}

// take returns the spans of a trace once.
func (a *prefetchedHeads) take(id otlpdata.TraceID) []tracestore.SummarySpan {
	i := slices.Index(a.ids, id)
	if i < 0 {
		return nil
	}
	list := a.lists[i]
	a.lists[i] = nil
	return list
}

// prefetchHeads reads the heads of up to maxPrefetch different traces, except traces that are too
// long. Damage is recorded.
func (r *traceReader) prefetchHeads(ctx context.Context, ids []otlpdata.TraceID) error {
	a := &r.prefetchedHeads
	*a = prefetchedHeads{ids: ids}
	var long [maxPrefetch]bool
	for src := range r.session.Sources {
		err := r.session.Decode(ctx, func() error {
			return r.traces(ctx, src, ids, func(t *rows.Tables, b source.Block, which int, list []int32) error {
				if long[which] || a.spans+len(list) > maxPrefetchedHeads {
					a.spans -= len(a.lists[which])
					r.freeHeads(a.lists[which])
					a.lists[which], long[which] = nil, true
					return nil
				}
				before, err := len(a.lists[which]), error(nil)
				a.lists[which], err = r.appendHeads(a.lists[which], ids[which], src, t, b, list)
				a.spans += len(a.lists[which]) - before
				return err
			})
		})
		if err = r.session.NoteDamage(src, "traces", 0, err); err != nil {
			return err
		}
	}
	return nil
}

// appendHeads appends the heads of rows. Damage is recorded.
func (r *traceReader) appendHeads(
	dst []tracestore.SummarySpan, id otlpdata.TraceID, src int, t *rows.Tables, b source.Block, list []int32,
) ([]tracestore.SummarySpan, error) {
	if cap(dst)-len(dst) < len(list) { // doubles the capacity; append grows long lists by less and copies more often
		before, more := cap(dst), max(len(dst), len(list))
		if err := r.session.Memory.Grow(int64(len(dst)+more-before) * headMemory); err != nil {
			return dst, err
		}
		reserved := len(dst) + more
		dst = slices.Grow(dst, more)
		if err := r.session.Memory.Grow(int64(cap(dst)-reserved) * headMemory); err != nil {
			return dst, err
		}
	}
	if r.extras != nil {
		r.extras.enter(r.session.Sources[src], t)
	}
	for _, row := range list {
		s, err := r.summarySpan(t, b, int(row))
		if err == nil {
			dst = append(dst, s)
		} else if err = r.session.NoteDamage(src, scan.TracePart(id), 1, err); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// summary returns the summary of a trace. It reads heads of rows, and whole spans only if several
// have the same start and id and may be duplicates.
func (r *traceReader) summary(ctx context.Context, id otlpdata.TraceID) (*tracestore.Summary, error) {
	spans := r.prefetchedHeads.take(id)
	if spans == nil {
		err := r.eachPart(ctx, id, func(src int, t *rows.Tables, b source.Block, list []int32) (err error) {
			spans, err = r.appendHeads(spans, id, src, t, b, list)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	defer r.freeHeads(spans)
	spans, err := r.withoutDuplicates(ctx, id, spans)
	if err != nil {
		return nil, err
	}
	out := storequery.SummarizeSpans(id, spans)
	return &out, nil
}

func (r *traceReader) summarySpan(t *rows.Tables, b source.Block, row int) (tracestore.SummarySpan, error) {
	h := &r.head
	if err := b.Head(row, h); err != nil {
		return tracestore.SummarySpan{}, err
	}
	if int(h.Shape) >= len(t.Shapes) {
		return tracestore.SummarySpan{}, scan.ErrReference
	}
	shape := &t.Shapes[h.Shape]
	name := otlpdata.Span{Name: shape.Name}
	if shape.NameInRow {
		var err error
		if name.Name, err = scan.SpanName(t, shape, b, row); err != nil {
			return tracestore.SummarySpan{}, err
		}
	}
	s := tracestore.SummarySpan{
		ID: h.SpanID, Parent: h.ParentID, Start: h.Start, Duration: h.Duration(),
		Service: shape.Service, Name: name.Operation(), Kind: shape.Kind, Failed: shape.Status == otlpdata.StatusError,
	}
	if r.extras == nil {
		return s, nil
	}
	return s, r.extras.add(&s, b, row, h)
}

func sortHeads(spans []tracestore.SummarySpan) {
	slices.SortFunc(spans, func(a, b tracestore.SummarySpan) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), bytes.Compare(a.ID[:], b.ID[:]))
	})
}

// sameKey reports whether two spans may be duplicates.
func sameKey(a, b tracestore.SummarySpan) bool { return a.Start == b.Start && a.ID == b.ID }

// withoutDuplicates reads the spans that have the same start and id as others, and keeps one of
// each group of duplicates.
func (r *traceReader) withoutDuplicates(
	ctx context.Context, id otlpdata.TraceID, spans []tracestore.SummarySpan,
) ([]tracestore.SummarySpan, error) {
	sortHeads(spans)
	shared := make(map[spanKey]struct{})
	for i := range spans {
		if i > 0 && sameKey(spans[i-1], spans[i]) {
			shared[spanKey{spans[i].Start, spans[i].ID}] = struct{}{}
		}
	}
	if len(shared) == 0 {
		return spans, nil
	}
	spans = slices.DeleteFunc(spans, func(s tracestore.SummarySpan) bool {
		_, is := shared[spanKey{s.Start, s.ID}]
		return is
	})
	r.keys = shared
	defer func() { r.keys = nil }()
	for b, err := range r.pieces(ctx, id) {
		if err == nil {
			err = tracestore.WalkSpans(b, func(s tracestore.Span) error {
				spans = append(spans, r.copySpan(s))
				return nil
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return spans, nil
}

// copySpan returns the fields of a whole span that a summary or an outline needs. It shares no
// strings with s.
func (r *traceReader) copySpan(s tracestore.Span) tracestore.SummarySpan {
	var unused storequery.Hosts
	hosts := &unused
	if r.extras != nil {
		hosts = &r.extras.hosts
	}
	out := hosts.OutlineSpan(s)
	out.Service, out.Name = strings.Clone(out.Service), strings.Clone(out.Name)
	switch {
	case r.extras == nil:
		out.Extras = nil
	case out.Extras != nil:
		for i := range out.Extras.Events {
			out.Extras.Events[i].Name = r.extras.text(out.Extras.Events[i].Name)
		}
		out.Extras.Peer = r.extras.text(out.Extras.Peer)
		r.extras.size += out.Extras.Size()
	}
	return out
}
