package multistore

import (
	"cmp"
	"context"
	"sync"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Outline implements tracestore.Reader. The outline of a divided trace is built from its spans,
// because outlines do not show which spans are duplicates.
func (s *Store) Outline(
	ctx context.Context, tenant string, id otlpdata.TraceID, limit int,
	hold func(spans, textBytes int) error, take func([]tracestore.SummarySpan) error,
) error {
	o := outlines{hold: hold, held: make([]heldOutline, len(s.stores))}
	found := make([][]tracestore.SummarySpan, len(s.stores)) // valid until release
	errs := make([]error, len(s.stores))
	release := make(chan struct{})
	var answered, ended sync.WaitGroup
	answered.Add(len(s.stores))
	for i, m := range s.stores {
		ended.Go(func() {
			c := m.newCall(ctx)
			defer c.release()
			stop := c.limitTime()
			answer := sync.OnceFunc(func() {
				stop() // before it waits for other stores
				answered.Done()
			})
			defer answer()
			store, ok := tracestore.As[tracestore.Reader](c.ctx, tenant, m.Store)
			if !ok {
				errs[i] = unsupported(m.Name)
				return
			}
			holdPart := func(spans, textBytes int) error { return o.holdPart(i, heldOutline{spans, textBytes}) }
			errs[i] = c.failure(store.Outline(c.ctx, tenant, id, limit, holdPart, func(spans []tracestore.SummarySpan) error {
				found[i] = spans
				answer()
				<-release
				return nil
			}))
		})
	}
	answered.Wait()
	holders := 0
	var err error
	for _, spans := range found {
		if len(spans) > 0 {
			holders++
		}
	}
	for _, spans := range found {
		if holders == 1 && len(spans) > 0 {
			err = take(spans)
		}
	}
	close(release)
	ended.Wait()
	if err = cmp.Or(err, o.failed); err != nil {
		return err
	}
	if holders > 1 {
		return storequery.WholeTraces{Of: s}.Outline(ctx, tenant, id, limit, hold, take)
	}
	lost := losses{total: len(s.stores)}
	for i, err := range errs {
		if err != nil {
			if err := lost.note(ctx, s.stores[i].Name, err); err != nil {
				return err
			}
		}
	}
	if lost.allFailed() {
		return lost.noAnswer()
	}
	return damage(lost.missing)
}

// outlines adds up the memory of outlines from several stores.
type outlines struct {
	mu     sync.Mutex
	hold   func(spans, textBytes int) error
	held   []heldOutline // by store
	failed error         // of hold
}

type heldOutline struct{ spans, textBytes int }

func (o *outlines) holdPart(store int, h heldOutline) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held[store] = h
	var all heldOutline
	for _, h := range o.held {
		all.spans += h.spans
		all.textBytes += h.textBytes
	}
	err := o.hold(all.spans, all.textBytes)
	if o.failed == nil {
		o.failed = err
	}
	return err
}
