package multistore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// down is a store that fails all calls, as one in another process that cannot be reached.
type down struct{ err error }

func (d down) Traces(context.Context, string, []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) { yield(tracestore.Trace{}, d.err) }
}

func (d down) SelectSpans(
	ctx context.Context, tenant string, _ otlpdata.TraceID, _ []otlpdata.SpanID,
) iter.Seq2[tracestore.Trace, error] {
	return d.Traces(ctx, tenant, nil)
}

func (d down) Find(context.Context, tracestore.Query, tracestore.Want) (*tracestore.Results, error) {
	return nil, d.err
}

func (d down) Services(context.Context, string, tracestore.NameQuery) ([]string, bool, error) {
	return nil, false, d.err
}

func (d down) Operations(context.Context, string, string, string, tracestore.NameQuery) ([]tracestore.Operation, bool, error) {
	return nil, false, d.err
}

func (d down) AttributeKeys(context.Context, string, string, int) ([]string, error) {
	return nil, d.err
}

func (d down) AttributeValues(context.Context, string, string, string, int) ([]string, error) {
	return nil, d.err
}

func (d down) Outline(
	context.Context, string, otlpdata.TraceID, int, func(spans, textBytes int) error, func([]tracestore.SummarySpan) error,
) error {
	return d.err
}

func (d down) FindSpans(context.Context, string, otlpdata.TraceID, tracestore.SpanCondition) (tracestore.FoundSpans, error) {
	return tracestore.FoundSpans{}, d.err
}

func (d down) TraceVersion(context.Context, string, otlpdata.TraceID) (tracestore.TraceVersion, error) {
	return tracestore.TraceVersion{}, d.err
}

func (d down) TraceSpans(context.Context, string, otlpdata.TraceID) (int, error) { return 0, d.err }

func (d down) Follow(context.Context, string, int) (*tracestore.Feed, error) { return nil, d.err }

func (d down) Delete(context.Context, string, tracestore.Deletion) (tracestore.Deleted, error) {
	return tracestore.Deleted{}, d.err
}

var errDown = pipeline.Unavailable(errors.New("connection refused"), 0)

// oneSpan returns a batch with one span of a trace.
func oneSpan(trace, span byte, service string, start uint64) *otlpdata.Batch {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", service)
	s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetTraceID(pcommon.TraceID{15: trace})
	s.SetSpanID(pcommon.SpanID{7: span})
	s.SetName("op")
	s.SetStartTimestamp(pcommon.Timestamp(start))
	s.SetEndTimestamp(pcommon.Timestamp(start + 1))
	return otlpdata.FromTraces(td, otlpdata.Meta{})
}

// withDown returns three stores. The one in the middle is down. The others have parts of
// trace 1, and each has one more trace.
func withDown(t *testing.T) *Store {
	t.Helper()
	first, last := openDetailed(t), openDetailed(t)
	for store, batches := range map[tracestore.Reader][]*otlpdata.Batch{
		first: {oneSpan(1, 1, "cart", 10), oneSpan(2, 1, "cart", 20)},
		last:  {oneSpan(1, 2, "shop", 15), oneSpan(3, 1, "shop", 30)},
	} {
		for _, b := range batches {
			if err := store.(pipeline.Consumer).Consume(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	return New(Named{"first", first}, Named{"middle", down{errDown}}, Named{"last", last})
}

const missingMiddle = "store middle: connection refused"

// checkDamage checks that an error says that the store in the middle is missing, and nothing else.
func checkDamage(t *testing.T, what string, err error) {
	t.Helper()
	var damaged *tracestore.DamagedError
	if !errors.As(err, &damaged) || damaged.Text() != missingMiddle {
		t.Errorf("%s: error %v, want damage %q", what, err, missingMiddle)
	}
}

// readIDs reads traces, and returns the number of spans of each in the order in which they came.
func readIDs(all iter.Seq2[tracestore.Trace, error]) (read []string, failure error) {
	for t, err := range all {
		if err != nil {
			return read, err
		}
		read = append(read, fmt.Sprintf("%d:%d", t.ID[15], t.Spans.Len()))
	}
	return read, nil
}

// TestStoreDown checks that every result without one of several stores has everything of the
// others, and names the store that is missing.
func TestStoreDown(t *testing.T) {
	s, ctx := withDown(t), t.Context()
	id := otlpdata.TraceID{15: 1}
	read, err := readIDs(s.Traces(ctx, "", []tracestore.TraceRef{{ID: otlpdata.TraceID{15: 3}}, {ID: id}}))
	checkDamage(t, "Traces", err)
	if want := []string{"3:1", "1:1", "1:1"}; !slices.Equal(read, want) {
		t.Errorf("Traces: %v, want %v", read, want)
	}
	read, err = readIDs(s.SelectSpans(ctx, "", id, []otlpdata.SpanID{{7: 1}}))
	checkDamage(t, "SelectSpans", err)
	if len(read) == 0 {
		t.Error("SelectSpans: no spans")
	}
	names, _, err := s.Services(ctx, "", tracestore.NameQuery{})
	checkDamage(t, "Services", err)
	if !slices.Equal(names, []string{"cart", "shop"}) {
		t.Errorf("Services: %v", names)
	}
	names, more, err := s.Services(ctx, "", tracestore.NameQuery{Limit: 1})
	checkDamage(t, "Services", err)
	if !slices.Equal(names, []string{"cart"}) || !more {
		t.Errorf("Services with a limit: %v, %t", names, more)
	}
	ops, _, err := s.Operations(ctx, "", "cart", "", tracestore.NameQuery{})
	checkDamage(t, "Operations", err)
	if len(ops) != 1 {
		t.Errorf("Operations: %v", ops)
	}
	values, err := s.AttributeValues(ctx, "", "service.name", "", 0)
	checkDamage(t, "AttributeValues", err)
	if !slices.Equal(values, []string{"cart", "shop"}) {
		t.Errorf("AttributeValues: %v", values)
	}
	keys, err := s.AttributeKeys(ctx, "", "", 0)
	checkDamage(t, "AttributeKeys", err)
	if !slices.Equal(keys, []string{"service.name"}) {
		t.Errorf("AttributeKeys: %v", keys)
	}
	spans := 0
	err = s.Outline(ctx, "", id, 0, func(int, int) error { return nil }, func(outline []tracestore.SummarySpan) error {
		spans += len(outline)
		return nil
	})
	checkDamage(t, "Outline", err)
	if spans != 2 {
		t.Errorf("Outline: %d spans, want 2", spans)
	}
	found, err := s.FindSpans(ctx, "", id, tracestore.SpanCondition{})
	checkDamage(t, "FindSpans", err)
	if found.Spans != 2 || len(found.IDs) != 2 {
		t.Errorf("FindSpans: %+v", found)
	}
	_, err = s.TraceVersion(ctx, "", id)
	checkDamage(t, "TraceVersion", err)
	if _, err := s.Follow(ctx, "", 1<<20); err == nil || !strings.Contains(err.Error(), missingMiddle) || !pipeline.IsTemporary(err) {
		t.Errorf("Follow: %v", err)
	}
	deleted, err := s.Delete(ctx, "", tracestore.Deletion{Traces: []otlpdata.TraceID{id}})
	if err == nil || !strings.Contains(err.Error(), missingMiddle) || deleted.Spans != 2 {
		t.Errorf("Delete: %+v, %v", deleted, err)
	}
	if read, _ := readIDs(s.Traces(ctx, "", []tracestore.TraceRef{{ID: id}})); len(read) > 0 {
		t.Errorf("deleted trace is returned: %v", read)
	}
}

// TestSearchWithStoreDown checks the pages of a search without one of the stores.
func TestSearchWithStoreDown(t *testing.T) {
	s := withDown(t)
	for _, limit := range []int{0, 1, 2} {
		var found []string
		q := tracestore.Query{Limit: limit}
		for more := true; more; {
			res, err := s.Find(t.Context(), q, tracestore.WantSummaries)
			if err != nil {
				t.Fatal(err)
			}
			for r, err := range res.All {
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, fmt.Sprintf("%d:%d", r.ID[15], r.Summary.Spans))
			}
			o := res.Outcome()
			if o.Complete() || o.Text() != missingMiddle {
				t.Errorf("limit %d: %+v", limit, o)
			}
			q.After, more = o.Next, o.Next.Set
		}
		if want := []string{"3:1", "2:1", "1:2"}; !slices.Equal(found, want) {
			t.Errorf("limit %d: found %v, want %v", limit, found, want)
		}
	}
}

// lost is a store whose answers end with an error after the first result.
type lost struct{ tracestore.Reader }

func (l lost) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	res, err := l.Reader.Find(ctx, q, want)
	if err != nil {
		return nil, err
	}
	return &tracestore.Results{Outcome: res.Outcome, All: cut(res.All)}, nil
}

func (l lost) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return cut(l.Reader.Traces(ctx, tenant, refs))
}

func cut[V any](values iter.Seq2[V, error]) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for v, err := range values {
			if !yield(v, err) {
				return
			}
			break
		}
		var none V
		yield(none, errDown)
	}
}

// TestStoreLostMidway checks that everything that a store returned before it failed is kept.
func TestStoreLostMidway(t *testing.T) {
	first, second := openMemory(t), openMemory(t)
	for i := range byte(4) {
		store := []pipeline.Consumer{first, second}[i%2]
		if err := store.Consume(t.Context(), oneSpan(i+1, 1, "cart", 100-uint64(i))); err != nil {
			t.Fatal(err)
		}
	}
	s := New(Named{"first", first}, Named{"middle", lost{second}})
	res, err := s.Find(t.Context(), tracestore.Query{}, tracestore.WantFull)
	if err != nil {
		t.Fatal(err)
	}
	var ids []byte
	for r, err := range res.All {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID[15])
	}
	if o := res.Outcome(); string(ids) != "\x01\x02\x03" || o.Complete() || o.Text() != missingMiddle {
		t.Errorf("found %v, %+v", ids, o)
	}
	read, err := readIDs(s.Traces(t.Context(), "", []tracestore.TraceRef{{ID: otlpdata.TraceID{15: 4}}, {ID: otlpdata.TraceID{15: 2}},
		{ID: otlpdata.TraceID{15: 1}}}))
	checkDamage(t, "Traces", err)
	if want := []string{"4:1", "1:1"}; !slices.Equal(read, want) {
		t.Errorf("Traces: %v, want %v", read, want)
	}
}

// TestErrors checks which errors of stores become errors of the whole request.
func TestErrors(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	bad := pipeline.Permanent(errors.New("invalid query"))
	up := openMemory(t)
	for _, c := range []struct {
		ctx    context.Context //nolint:containedctx // an input
		stores []Named
		is     error
		text   string
	}{
		{t.Context(), []Named{{"a", up}, {"b", down{bad}}}, bad, "invalid query"},
		{t.Context(), []Named{{"a", up}, {"b", down{tracestore.ErrUnsupported}}}, tracestore.ErrUnsupported, ""},
		{t.Context(), []Named{{"a", down{errDown}}, {"b", down{errDown}}}, errDown, "store a: connection refused; store b: connection refused"},
		{ended, []Named{{"a", up}, {"b", down{errDown}}}, context.Canceled, "context canceled"},
	} {
		s := New(c.stores...)
		_, _, services := s.Services(c.ctx, "", tracestore.NameQuery{})
		_, find := s.Find(c.ctx, tracestore.Query{}, tracestore.WantIDs)
		_, traces := readIDs(s.Traces(c.ctx, "", []tracestore.TraceRef{{ID: otlpdata.TraceID{1}}}))
		for what, err := range map[string]error{"Services": services, "Find": find, "Traces": traces} {
			if !errors.Is(err, c.is) || c.text != "" && err.Error() != c.text || pipeline.IsTemporary(err) != pipeline.IsTemporary(c.is) {
				t.Errorf("%s of %v: %v, want %v", what, c.stores, err, c.is)
			}
		}
	}
}

// silent is a store that does not answer until its context ends, except for the first result or
// trace of reader.
type silent struct {
	down
	reader tracestore.Reader // nil: it does not answer any call
}

func (silent) Services(ctx context.Context, _ string, _ tracestore.NameQuery) ([]string, bool, error) {
	<-ctx.Done()
	return nil, false, ctx.Err()
}

func (s silent) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	if s.reader == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	res, err := s.reader.Find(ctx, q, want)
	if err != nil {
		return nil, err
	}
	return &tracestore.Results{Outcome: res.Outcome, All: silentAfterFirst(ctx, res.All)}, nil
}

func (s silent) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	if s.reader == nil {
		return func(yield func(tracestore.Trace, error) bool) {
			<-ctx.Done()
			yield(tracestore.Trace{}, ctx.Err())
		}
	}
	return silentAfterFirst(ctx, s.reader.Traces(ctx, tenant, refs))
}

func (silent) Outline(
	ctx context.Context, _ string, _ otlpdata.TraceID, _ int, _ func(spans, textBytes int) error, _ func([]tracestore.SummarySpan) error,
) error {
	<-ctx.Done()
	return ctx.Err()
}

func silentAfterFirst[V any](ctx context.Context, values iter.Seq2[V, error]) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for v, err := range values {
			if !yield(v, err) {
				return
			}
			<-ctx.Done()
			var none V
			yield(none, ctx.Err())
			return
		}
	}
}

// attentive is a store that answers only calls whose context has not ended, as one in another
// process does.
type attentive struct{ detailed }

func (a attentive) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	res, err := a.detailed.Find(ctx, q, want)
	if err != nil {
		return nil, err
	}
	return &tracestore.Results{Outcome: res.Outcome, All: whileOpen(ctx, res.All)}, nil
}

func (a attentive) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return whileOpen(ctx, a.detailed.Traces(ctx, tenant, refs))
}

func whileOpen[V any](ctx context.Context, values iter.Seq2[V, error]) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for v, err := range values {
			if ctx.Err() != nil {
				var none V
				yield(none, ctx.Err())
				return
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

const missingSilent = "store silent: did not respond in time"

// withSilent returns three stores. The one in the middle does not respond. The others have 30
// traces each, the newer ones in the first.
func withSilent(t *testing.T, s silent) *Store {
	t.Helper()
	first, last := attentive{openDetailed(t).(detailed)}, attentive{openDetailed(t).(detailed)}
	for i := range byte(60) {
		store := first
		if i >= 30 {
			store = last
		}
		if err := store.Consume(t.Context(), oneSpan(i+1, 1, "cart", 1000-uint64(i))); err != nil {
			t.Fatal(err)
		}
	}
	return New(Named{"first", first}, Named{"silent", s}, Named{"last", last})
}

// TestSilentStore checks that a store that does not answer leaves time for the results of the
// others, also to several calls one after the other. The time is fake.
func TestSilentStore(t *testing.T) {
	one := openMemory(t)
	if err := one.Consume(t.Context(), oneSpan(1, 1, "cart", 2000)); err != nil {
		t.Fatal(err)
	}
	for _, s := range []silent{{}, {reader: one}} {
		own := 0 // results of the silent store
		if s.reader != nil {
			own = 1
		}
		synctest.Test(t, func(t *testing.T) {
			all := withSilent(t, s)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for range 5 {
				for want := range tracestore.WantFull + 1 {
					checkSilentFind(ctx, t, all, 40, 40, want)
				}
				checkSilentFind(ctx, t, all, 0, 60, tracestore.WantFull)
				refs := make([]tracestore.TraceRef, 60)
				for i := range refs {
					refs[i].ID[15] = byte(i + 1)
				}
				read, err := readIDs(all.Traces(ctx, "", refs))
				checkSilent(t, "Traces", err)
				if len(read) != 60+own {
					t.Errorf("Traces: %d pieces, want %d", len(read), 60+own)
				}
				names, _, err := all.Services(ctx, "", tracestore.NameQuery{})
				checkSilent(t, "Services", err)
				if !slices.Equal(names, []string{"cart"}) {
					t.Errorf("Services: %v", names)
				}
				spans := 0
				err = all.Outline(ctx, "", otlpdata.TraceID{15: 1}, 0, func(int, int) error { return nil },
					func(outline []tracestore.SummarySpan) error {
						spans += len(outline)
						return nil
					})
				checkSilent(t, "Outline", err)
				if spans != 1 {
					t.Errorf("Outline: %d spans, want 1", spans)
				}
			}
		})
	}
}

func checkSilent(t *testing.T, what string, err error) {
	t.Helper()
	var damaged *tracestore.DamagedError
	if !errors.As(err, &damaged) || damaged.Text() != missingSilent {
		t.Errorf("%s: error %v, want damage %q", what, err, missingSilent)
	}
}

func checkSilentFind(ctx context.Context, t *testing.T, s *Store, limit, found int, want tracestore.Want) {
	t.Helper()
	res, err := s.Find(ctx, tracestore.Query{Limit: limit}, want)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range res.All {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if o := res.Outcome(); n != found || o.Complete() || o.Text() != missingSilent {
		t.Errorf("Find with limit %d: %d results, want %d; %+v", limit, n, found, o)
	}
}

// TestAllSilent checks that a request without a response from any store fails with a deadline
// error.
func TestAllSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, _, err := New(Named{"silent", silent{}}).Services(ctx, "", tracestore.NameQuery{})
		if !errors.Is(err, context.DeadlineExceeded) || err.Error() != missingSilent {
			t.Error(err)
		}
	})
}
