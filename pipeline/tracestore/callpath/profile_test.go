package callpath

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// fakeStore finds traces 1, 2, ... for each query, and fails as it is told to.
type fakeStore struct {
	storequery.WholeTraces

	traces    int
	findErr   error // after all traces were found
	damagedAt int   // trace whose rest cannot be read
}

func (f *fakeStore) Find(_ context.Context, _ tracestore.Query, _ tracestore.Want) (*tracestore.Results, error) {
	all := func(yield func(tracestore.Result, error) bool) {
		for i := f.traces; i > 0; i-- {
			if !yield(tracestore.Result{ID: otlpdata.TraceID{15: byte(i)}, Start: uint64(i)}, nil) {
				return
			}
		}
		if f.findErr != nil {
			yield(tracestore.Result{}, f.findErr)
		}
	}
	return &tracestore.Results{All: all, Outcome: func() tracestore.Outcome {
		if f.findErr != nil {
			return tracestore.Unread()
		}
		return tracestore.Outcome{}
	}}, nil
}

func (f *fakeStore) Traces(_ context.Context, _ string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		for _, ref := range refs {
			td := ptrace.NewTraces()
			rs := td.ResourceSpans().AppendEmpty()
			rs.Resource().Attributes().PutStr("service.name", "web")
			s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
			s.SetTraceID(pcommon.TraceID(ref.ID))
			s.SetSpanID(pcommon.SpanID{1})
			s.SetName("GET /")
			s.SetStartTimestamp(1000)
			s.SetEndTimestamp(1100)
			if !yield(tracestore.Trace{ID: ref.ID, Spans: otlpdata.FromTraces(td, otlpdata.Meta{})}, nil) {
				return
			}
			if int(ref.ID[15]) == f.damagedAt && !yield(tracestore.Trace{}, tracestore.Damaged("file damaged", nil)) {
				return
			}
		}
	}
}

func (f *fakeStore) Outline(
	ctx context.Context, tenant string, id otlpdata.TraceID, limit int, hold func(int, int) error, take func([]tracestore.SummarySpan) error,
) error {
	return storequery.WholeTraces{Of: f}.Outline(ctx, tenant, id, limit, hold, take)
}

// never is a selection of nothing.
func never() tracestore.Selection { return tracestore.Selection{Where: tracestore.Or{}} }

func TestProfileOfDamagedTraces(t *testing.T) {
	p, err := Profile(t.Context(), &fakeStore{traces: 5, damagedAt: 3}, tracestore.Query{}, never(), tracestore.PathOptions{})
	if err != nil || p.Complete() || p.Text() != "file damaged" || p.Selected.Traces+p.Rest.Traces != 5 {
		t.Errorf("error %v, profile %+v", err, p)
	}
}

// TestProfileEndsEarly checks that a query whose time ends answers with what it has read, and
// another error is returned.
func TestProfileEndsEarly(t *testing.T) {
	store := &fakeStore{traces: 2, findErr: context.DeadlineExceeded}
	p, err := Profile(t.Context(), store, tracestore.Query{}, tracestore.Selection{}, tracestore.PathOptions{Traces: 2})
	if err != nil || p.Complete() || !strings.Contains(p.Text(), "stopped after reading 2 traces") || p.Selected.Traces != 2 {
		t.Errorf("error %v, profile %+v", err, p)
	}
	store.traces = 0
	_, err = Profile(t.Context(), store, tracestore.Query{}, tracestore.Selection{}, tracestore.PathOptions{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nothing was read: error %v, want %v", err, context.DeadlineExceeded)
	}
	store = &fakeStore{traces: 2, findErr: errors.New("disk full")}
	_, err = Profile(t.Context(), store, tracestore.Query{}, tracestore.Selection{}, tracestore.PathOptions{})
	if !errors.Is(err, store.findErr) {
		t.Errorf("error %v, want %v", err, store.findErr)
	}
}

// TestProfileMemory checks that a query without memory is an error, and that all memory is given
// back.
func TestProfileMemory(t *testing.T) {
	none := account(0)
	ctx := tracestore.WithAccount(t.Context(), &none)
	if _, err := Profile(ctx, &fakeStore{traces: 2}, tracestore.Query{}, never(), tracestore.PathOptions{}); !tracestore.IsOutOfMemory(err) {
		t.Errorf("error %v, want one of memory", err)
	}
	const size = 8 << 20
	left := account(size)
	ctx = tracestore.WithAccount(t.Context(), &left)
	if _, err := Profile(ctx, &fakeStore{traces: 50}, tracestore.Query{}, never(), tracestore.PathOptions{}); err != nil || left != size {
		t.Errorf("error %v, %d of %d bytes are left", err, left, size)
	}
}

// TestExcessTraces checks that a sample is not complete if the last traces that it read together
// were more than it wanted.
func TestExcessTraces(t *testing.T) {
	p := &profiler{reader: &fakeStore{traces: 12}, want: 1, known: make(map[otlpdata.TraceID]bool)}
	s := sampling{profiler: p, selected: true, accepts: func(id otlpdata.TraceID, _ []tracestore.SummarySpan) (bool, error) {
		return id[15] <= 3, nil
	}}
	if err := s.run(t.Context()); err != nil || s.found != 1 || s.complete() || s.share() != 1./3 {
		t.Errorf("error %v, found %d, complete %t, share %v", err, s.found, s.complete(), s.share())
	}
}

// TestReasonsOfDamage checks that the result does not repeat what many reads say about one file.
func TestReasonsOfDamage(t *testing.T) {
	p := &profiler{}
	for i := range 100 {
		p.noteUnread(tracestore.Because(tracestore.ReasonDamage, fmt.Sprintf("%d parts of a file cannot be read", i/10+1)))
	}
	const want = "1 parts of a file cannot be read; other traces could not be read, either"
	if got := p.answer([2]float64{1, 1}).Text(); got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
}
