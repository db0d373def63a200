package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	// The number of traces per statement grows from the first limit to the second, because callers
	// may stop after a few traces.
	tracesPerStatement, maxTracesPerStatement = 64, 1024

	// maxTogether is the maximum number of bytes that are held until the traces before them were
	// returned. Statements should read at most wantedTogether.
	maxTogether, wantedTogether = 16 << 20, 8 << 20
)

// Traces implements tracestore.Reader. It uses hints to select partitions.
func (e *exporter) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		r := e.reader(tenant, yield)
		next := newBatchSize()
		for left := refs; len(left) > 0; {
			n := min(next.traces, len(left))
			size, done, err := r.read(ctx, left[:n])
			switch {
			case errors.Is(err, errStop):
				return
			case err != nil:
				yield(tracestore.Trace{}, err)
				return
			case done:
				left = left[n:]
				next.wasRead(n, size)
			default:
				next.wasTooLarge(n, size)
			}
		}
		if err := cmp.Or(r.damaged(ctx, len(refs)), ctx.Err()); err != nil {
			yield(tracestore.Trace{}, err)
		}
	}
}

// batchSize determines the number of traces that the next statement reads, from the sizes of the
// traces before them.
type batchSize struct {
	traces int
	bytes  int64 // that the traces should have together; less than wantedTogether after a lack of memory
}

func newBatchSize() batchSize { return batchSize{tracesPerStatement, wantedTogether} }

// wasRead says that n traces with a size in bytes were read.
func (b *batchSize) wasRead(n int, size int64) {
	b.bytes = min(b.bytes+b.bytes/4, wantedTogether)
	fit := max(int64(n)*b.bytes/max(size, 1), 1)
	b.traces = int(min(fit, int64(2*n), maxTracesPerStatement))
}

// wasTooLarge says that n traces could not be held together after a size in bytes.
func (b *batchSize) wasTooLarge(n int, size int64) {
	const least = 64 << 10
	b.bytes = min(b.bytes, max(size/2, least))
	b.traces = max(n/2, 1)
}

// traceReader reads whole traces.
type traceReader struct {
	store  *exporter
	tenant string
	yield  func(tracestore.Trace, error) bool
	damage error // of the first damaged trace
	found  map[otlpdata.TraceID]struct{}
}

// damaged returns an error if a trace is damaged, or if one of a number of traces was not found
// because shards do not respond.
func (r *traceReader) damaged(ctx context.Context, traces int) error {
	if r.damage == nil && len(r.found) < traces {
		return r.store.incomplete(ctx)
	}
	return r.damage
}

func (e *exporter) reader(tenant string, yield func(tracestore.Trace, error) bool) *traceReader {
	return &traceReader{store: e, tenant: tenant, yield: yield, found: make(map[otlpdata.TraceID]struct{})}
}

// read yields the traces of refs in their order. It returns errStop if the caller wants no more,
// and false if they are too large to be read together. size is the number of bytes that it read.
func (r *traceReader) read(ctx context.Context, refs []tracestore.TraceRef) (size int64, done bool, err error) {
	if len(refs) == 1 {
		size, err = r.readOne(ctx, refs)
		return size, true, err
	}
	return r.readTogether(ctx, refs)
}

// readOne yields a trace in pieces while it reads it.
func (r *traceReader) readOne(ctx context.Context, ref []tracestore.TraceRef) (size int64, _ error) {
	err := r.pieces(r.store.seek(ctx, 1), conditionOf(ref), nil, func(t tracestore.Trace) error {
		size += int64(t.Spans.Size())
		if !r.yield(t, nil) {
			return errStop
		}
		return ctx.Err()
	})
	return size, err
}

var errTooMuch = errors.New("too much data to read together")

// readTogether reads several traces with one statement. It returns false if they are too large to
// hold together.
func (r *traceReader) readTogether(ctx context.Context, refs []tracestore.TraceRef) (size int64, done bool, err error) {
	memory, _ := tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
	defer memory.Release()
	held := make(map[otlpdata.TraceID][]tracestore.Trace)
	err = r.pieces(r.store.seek(ctx, len(refs)), conditionOf(refs), nil, func(t tracestore.Trace) error {
		if size += int64(t.Spans.Size()); size > maxTogether || memory.Grow(int64(t.Spans.Size())) != nil {
			return errTooMuch
		}
		held[t.ID] = append(held[t.ID], t)
		return nil
	})
	if errors.Is(err, errTooMuch) {
		return size, false, nil
	}
	if err != nil {
		return size, false, err
	}
	for _, ref := range refs {
		for _, t := range held[ref.ID] {
			if !r.yield(t, nil) {
				return size, true, errStop
			}
			if err := ctx.Err(); err != nil {
				return size, true, err
			}
		}
	}
	return size, true, nil
}

// pieces calls take with the spans that meet a condition and, if keep is not nil, for which keep
// returns true. Each piece belongs to one trace. An error of take ends the read and is returned.
func (r *traceReader) pieces(
	ctx context.Context, condition string, keep func(tracestore.Span) bool, take func(tracestore.Trace) error,
) error {
	memory, _ := tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
	defer memory.Release()
	var p *piece
	flush := func() error {
		if p == nil {
			return nil
		}
		t := tracestore.Trace{ID: p.id, Spans: p.batch(r.tenant)}
		p, r.found[t.ID] = nil, struct{}{}
		err := take(t)
		memory.Release()
		return err
	}
	err := r.store.eachSpan(ctx, r.tenant, condition, func(s tracestore.Span) error {
		if keep != nil && !keep(s) {
			return nil
		}
		if p != nil && (p.id != s.TraceID || p.size >= pieceBytes) {
			if err := flush(); err != nil {
				return err
			}
		}
		if p == nil {
			p = newPiece(s.TraceID)
		}
		p.add(s)
		return memory.Resize(int64(2 * p.size)) // the spans and the batch
	})
	var damaged *tracestore.DamagedError
	if err != nil && !errors.As(err, &damaged) {
		return err
	}
	if r.damage == nil {
		r.damage = err
	}
	return flush()
}

// conditionOf returns the condition on the rows of traces.
func conditionOf(refs []tracestore.TraceRef) string {
	ids := make([]otlpdata.TraceID, len(refs))
	from, to := uint64(math.MaxUint64), uint64(0)
	for i, ref := range refs {
		ids[i] = ref.ID
		first, last, ok := tracestore.Query{From: ref.From, To: ref.To}.Window()
		if !ok {
			first, last = 0, math.MaxUint64 // a hint, not a condition
		}
		from, to = min(from, first), max(to, last)
	}
	return ofTraces(ids) + " AND " + where.Days(from, to)
}

// seek returns a context with settings of a statement that reads all rows of some traces. A trace
// has few rows, so one thread reads them fastest. With a limit of rows, the server evaluates the
// index of trace ids before it begins to read parts.
func (e *exporter) seek(ctx context.Context, traces int) context.Context {
	const unlimited = 1 << 60
	s := db.Settings{}
	if traces == 1 {
		s["max_threads"] = 1
	}
	if e.cfg.Query.MaxRows == 0 {
		s["max_rows_to_read"] = unlimited
	}
	return db.WithSettings(ctx, s)
}

// ofTraces returns the condition on the rows of traces.
func ofTraces(ids []otlpdata.TraceID) string {
	if len(ids) == 1 {
		return "trace_id = " + where.TraceID(ids[0])
	}
	return "trace_id IN (" + where.TraceIDs(ids) + ")"
}

// SelectSpans implements tracestore.Reader. The server selects the spans in whose encoding an
// id occurs.
func (e *exporter) SelectSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, spans []otlpdata.SpanID,
) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		if len(spans) == 0 {
			return
		}
		set := make(map[otlpdata.SpanID]struct{}, len(spans))
		for _, id := range spans {
			set[id] = struct{}{}
		}
		r := e.reader(tenant, yield)
		keep := func(s tracestore.Span) bool { return tracestore.SelectsSpan(s.Span, set) }
		err := r.pieces(e.seek(ctx, 1), ofTraces([]otlpdata.TraceID{id})+mentions(spans), keep, func(t tracestore.Trace) error {
			if !yield(t, nil) {
				return errStop
			}
			return nil
		})
		if errors.Is(err, errStop) {
			return
		}
		if err = cmp.Or(err, r.damaged(ctx, 1)); err != nil {
			yield(tracestore.Trace{}, err)
		}
	}
}

// maxMentions is the maximum number of ids that the server searches in encoded spans.
const maxMentions = 100

// mentions returns a condition, to be appended to another, that holds for all spans that have one
// of the ids or a link to one of them. A link need not contain an id of zeros.
func mentions(ids []otlpdata.SpanID) string {
	if len(ids) > maxMentions || slices.ContainsFunc(ids, otlpdata.SpanID.IsZero) {
		return ""
	}
	var b strings.Builder
	b.WriteString(" AND (0")
	for _, id := range ids {
		literal := where.SpanID(id)
		b.WriteString(" OR substring(ids, 1, 8) = " + literal + " OR position(rest, " + literal + ") > 0")
	}
	b.WriteString(")")
	return b.String()
}
