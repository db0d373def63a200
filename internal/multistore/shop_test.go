package multistore

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/exporters/memory"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openMemory returns an empty memory store, built as in a process: an extension refers to it.
func openMemory(tb testing.TB) (store storetest.Subject) {
	tb.Helper()
	type config struct {
		Storage pipeline.Ref[storetest.Subject] `yaml:"storage" doc:"The store."`
	}
	reader := pipeline.Extension("reader", func() config { return config{} }, func(_ pipeline.Settings, c config) (*int, error) {
		store = c.Storage.Get()
		return nil, nil
	})
	cfg, err := app.Load(app.LoadOptions{
		Factories: []pipeline.Factory{memory.Factory(), reader},
		Presets: []app.Preset{{Name: "test", YAML: []byte(`
exporters: {memory: {max_bytes: 1GiB, allow_delete: true}}
extensions: {reader: {storage: memory}}
service: {extensions: [reader]}
`)}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := app.New(cfg, app.Options{Log: io.Discard}); err != nil {
		tb.Fatal(err)
	}
	return store
}

// shop is several memory stores and the store over them.
type shop struct {
	*Store
	stores []storetest.Subject
	// route returns the stores for a span of a request.
	route    func(request int, id otlpdata.TraceID) []int
	requests atomic.Int64
}

func newShop(tb testing.TB, n int, route func(request int, id otlpdata.TraceID) []int) *shop {
	tb.Helper()
	return newShopOf(tb, openMemory, n, route)
}

func newShopOf(
	tb testing.TB, open func(testing.TB) storetest.Subject, n int, route func(request int, id otlpdata.TraceID) []int,
) *shop {
	tb.Helper()
	s := &shop{route: route}
	var named []Named
	for i := range n {
		s.stores = append(s.stores, open(tb))
		named = append(named, Named{fmt.Sprintf("store-%d", i), s.stores[i]})
	}
	s.Store = New(named...)
	return s
}

// Stores implements storetest.Several.
func (s *shop) Stores() int { return len(s.stores) }

// Consume implements storetest.Subject: it gives each span to the stores of its route.
func (s *shop) Consume(ctx context.Context, b *otlpdata.Batch) error {
	request := int(s.requests.Add(1))
	parts := make([]distinctSpans, len(s.stores))
	err := tracestore.WalkSpans(b, func(sp tracestore.Span) error {
		for _, i := range s.route(request, sp.TraceID) {
			parts[i].add(sp)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range parts {
		if parts[i].spans == 0 {
			continue
		}
		parts[i].flush()
		part := otlpdata.FromStored(parts[i].chunk, b.Meta(), parts[i].counts...)
		if err := s.stores[i].Consume(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// byTrace returns a route that gives each trace to copies of n stores.
func byTrace(n, copies int) func(int, otlpdata.TraceID) []int {
	return func(_ int, id otlpdata.TraceID) (stores []int) {
		sum := 0
		for _, b := range id {
			sum = 31*sum + int(b)
		}
		for i := range copies {
			stores = append(stores, ((sum+i)%n+n)%n)
		}
		return stores
	}
}

// byRequest divides traces: each request goes to another store.
func byRequest(n int) func(int, otlpdata.TraceID) []int {
	return func(request int, _ otlpdata.TraceID) []int { return []int{request % n} }
}
