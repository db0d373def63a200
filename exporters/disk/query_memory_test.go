//go:build unix

package disk

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/bench"
)

// heavyStore returns a store with a long trace and many keys, in segments and in a memtable.
func heavyStore(t *testing.T) (*exporter, otlpdata.TraceID) {
	s := newSetup(vfs.OS())
	s.config.Memtable.MaxBytes = 16 << 20
	s.config.Directory = t.TempDir()
	e := s.open(t)
	d := bench.New(1, s.clock.now())
	for i, kind := range []bench.Hostile{bench.OneTrace, bench.AllKeys, bench.OneTrace} {
		for _, b := range newWorkload(t, d.Hostile(kind, []int{20_000, 2_000, 5_000}[i], 500)).batches {
			if err := e.Consume(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		if i < 2 {
			flushStore(t, e)
		}
	}
	id := d.Trace(0)[0].TraceID
	return e, id
}

// heavyQueries returns expensive queries of all kinds. A query keeps what it has read until it
// ends, as callers do. It returns the number of results.
func heavyQueries(e *exporter, id otlpdata.TraceID, now time.Time) []func(ctx context.Context) (int, error) {
	find := func(want tracestore.Want) func(ctx context.Context) (int, error) {
		return func(ctx context.Context) (n int, _ error) {
			found, err := e.Find(ctx, tracestore.Query{Limit: 500}, want)
			if err != nil {
				return 0, err
			}
			for _, err := range found.All {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		}
	}
	from, to := now.Add(-time.Hour), now.Add(time.Hour)
	return []func(ctx context.Context) (int, error){
		find(tracestore.WantFull), find(tracestore.WantSummaries), find(tracestore.WantIDs),
		func(ctx context.Context) (int, error) { return readWhole(ctx, e, id) },
		func(ctx context.Context) (int, error) {
			a, err := e.Aggregate(ctx, tracestore.Query{From: from, To: to}, tracestore.Aggregation{
				Facets: tracestore.FacetQuery{Values: 10, Selection: &tracestore.Selection{From: from, To: now}}})
			return a.Scanned, err
		},
		func(ctx context.Context) (int, error) {
			p, err := e.ProfilePaths(ctx, tracestore.Query{From: from, To: to}, tracestore.Selection{From: now}, tracestore.PathOptions{})
			return int(p.Rest.Traces), err
		},
		func(ctx context.Context) (int, error) {
			g, err := e.Dependencies(ctx, "", from, to)
			return len(g.Edges), err
		},
		func(ctx context.Context) (int, error) {
			g, err := e.Peers(ctx, "", from, to)
			return 1 + len(g.Edges), err
		},
	}
}

// readWhole reads a trace and keeps its pieces, whose memory it reserves.
func readWhole(ctx context.Context, e *exporter, id otlpdata.TraceID) (n int, _ error) {
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return 0, err
	}
	defer memory.Release()
	var pieces []*otlpdata.Batch
	for p, err := range e.Traces(ctx, "", []tracestore.TraceRef{{ID: id}}) {
		if err == nil {
			err = memory.Grow(int64(p.Spans.Size()))
		}
		if err != nil {
			return n, err
		}
		pieces = append(pieces, p.Spans)
		n += p.Spans.Len()
	}
	runtime.KeepAlive(pieces)
	return n, nil
}

// Many concurrent expensive queries hold at most the memory of all queries: some of them are
// refused, or end early, and the heap grows by what is reserved and by what the store has for
// itself.
func TestQueriesShareMemory(t *testing.T) {
	const limit, clients = 48 << 20, 12
	if testing.Short() {
		t.Skip("measures memory, which the race detector distorts; make test-long runs it")
	}
	e, id := heavyStore(t)
	queries := heavyQueries(e, id, newClock().now())
	budget := pipeline.NewQueryBudget(limit)
	growth := watchHeap()
	var running sync.WaitGroup
	var answered, refused atomic.Int64
	for c := range clients {
		running.Go(func() {
			for i := range queries {
				account, err := budget.Reserve(1 << 20)
				if err == nil {
					_, err = queries[(i+c)%len(queries)](tracestore.WithAccount(t.Context(), account))
					account.Release()
				}
				status, _ := pipeline.HTTPStatus(err)
				switch status {
				case 200:
					answered.Add(1)
				case 429:
					refused.Add(1)
				default:
					t.Errorf("query %d: %v", (i+c)%len(queries), err)
				}
			}
		})
	}
	running.Wait()
	grown := growth().live
	if budget.Used() != 0 || budget.Peak() > limit || budget.Peak() < limit/2 {
		t.Errorf("%d bytes in use afterwards, %d at most, the limit is %d", budget.Used(), budget.Peak(), limit)
	}
	if answered.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d answered, %d refused", answered.Load(), refused.Load())
	}
	// The store's own share: cache and decoders. As much again, and half of the limit, are slack
	// for estimates.
	own := int64(e.config.Cache) + int64(e.config.Decoders)*decoderMemory
	if most := limit + limit/2 + 2*own; grown > most {
		t.Errorf("live heap grew by %.0f MiB, want at most %.0f", mib(grown), mib(most))
	}
	t.Logf("%d answered, %d refused, %.0f MiB reserved, live heap grew by %.0f MiB", answered.Load(), refused.Load(), mib(budget.Peak()),
		mib(grown))
}
