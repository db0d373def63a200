package tracestore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// follow follows the default tenant.
func follow(h *Hub, capacity int) *Feed {
	f, _ := h.Follow(context.Background(), "", capacity) // never fails
	return f
}

// TestFeedEnd checks that a feed that has ended first delivers what it holds.
func TestFeedEnd(t *testing.T) {
	closed := 0
	f := NewFeed("", 1<<20, func() { closed++ })
	failed := errors.New("connection lost")
	f.Offer(newBatch(t, "", false, 2))
	f.Miss(3)
	f.End(failed)
	<-f.Ready()
	if err := f.Err(); err != nil {
		t.Errorf("error %v while there is something to take", err)
	}
	if f.take(t, 2, 3); !errors.Is(f.Err(), failed) {
		t.Errorf("error %v, want %v", f.Err(), failed)
	}
	select {
	case <-f.Ready():
	default:
		t.Error("not ready although the feed has ended")
	}
	if f.Close(); closed != 1 {
		t.Errorf("closed %d times", closed)
	}
}

// newBatch returns a batch of a tenant, as bytes or as pdata objects.
func newBatch(t testing.TB, tenant string, objects bool, spans int) *otlpdata.Batch {
	t.Helper()
	td := ptrace.NewTraces()
	ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for range spans {
		ss.Spans().AppendEmpty().SetName("span")
	}
	b := otlpdata.FromTraces(td, otlpdata.Meta{Tenant: tenant})
	if objects {
		return b
	}
	encoded, err := b.Encoded()
	if err != nil {
		t.Fatal(err)
	}
	if b, err = otlpdata.FromOTLP(encoded, b.Meta(), otlpdata.Limits{}); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFeedIsBounded(t *testing.T) {
	var hub Hub
	one := newBatch(t, "", false, 3)
	f := follow(&hub, 2*(one.Size()+batchCost))
	defer f.Close()
	for range 5 {
		hub.Publish(one)
	}
	hub.Publish(newBatch(t, "other", false, 3))
	f.take(t, 3, 9) // missed spans are reported first
	hub.Publish(newBatch(t, "", true, 3))
	f.take(t, 3, 0)
	f.take(t, 3, 0)
	f.take(t, 0, 0)
	large := newBatch(t, "", false, 1000)
	hub.Publish(large)
	f.take(t, 0, 1000)
}

func (f *Feed) take(t *testing.T, spans, missed int) {
	t.Helper()
	b, m := f.Take()
	if n := lenOf(b); n != spans || m != missed {
		t.Errorf("took %d spans, missed %d; want %d and %d", n, m, spans, missed)
	}
}

func lenOf(b *otlpdata.Batch) int {
	if b == nil {
		return 0
	}
	return b.Len()
}

// TestFeedBuffersBytes checks that a batch of several chunks stays whole and that pdata objects
// are buffered as bytes.
func TestFeedBuffersBytes(t *testing.T) {
	var hub Hub
	f := follow(&hub, 1<<20)
	defer f.Close()
	several, err := otlpdata.Concat(newBatch(t, "", true, 2), newBatch(t, "", false, 3))
	if err != nil {
		t.Fatal(err)
	}
	hub.Publish(several)
	b, _ := f.Take()
	if b == several || b.Len() != 5 || b.Size() != several.Size() {
		t.Errorf("%d spans of %d bytes, want 5 of %d", b.Len(), b.Size(), several.Size())
	}
	spans := 0
	if err := WalkSpans(b, func(Span) error { spans++; return nil }); err != nil || spans != 5 {
		t.Errorf("%d spans: %v", spans, err)
	}
}

// TestFeedReady checks that a reader that waits for Ready gets every batch, and that closing a feed
// does not affect others.
func TestFeedReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub Hub
		b := newBatch(t, "", false, 1)
		f, closed := follow(&hub, 1<<20), follow(&hub, 1<<20)
		spans := 0
		var reading sync.WaitGroup
		reading.Go(func() {
			for spans < 100 {
				<-f.Ready()
				b, _ := f.Take()
				spans += lenOf(b)
			}
		})
		var writing sync.WaitGroup
		for range 10 {
			writing.Go(func() {
				for range 10 {
					hub.Publish(b)
				}
			})
		}
		closed.Close()
		closed.Close()
		writing.Wait()
		reading.Wait()
		f.Close()
		hub.Publish(b)
		if f.take(t, 0, 0); hub.feeds.Load() != nil {
			t.Error("the hub still has closed feeds")
		}
	})
}

func BenchmarkPublish(b *testing.B) {
	batch := newBatch(b, "", false, 100)
	var hub Hub
	b.Run("no feed", func(b *testing.B) {
		for b.Loop() {
			hub.Publish(batch)
		}
	})
	b.Run("slow reader", func(b *testing.B) {
		f := follow(&hub, 1<<20)
		defer f.Close()
		for b.Loop() {
			hub.Publish(batch)
		}
	})
}
