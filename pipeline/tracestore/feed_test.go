package tracestore

import (
	"sync"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// told returns a batch of a tenant, as bytes or as objects.
func told(t testing.TB, tenant string, objects bool, spans int) *otlpdata.Batch {
	t.Helper()
	td := ptrace.NewTraces()
	ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for range spans {
		ss.Spans().AppendEmpty().SetName("told")
	}
	b := otlpdata.FromTraces(td, otlpdata.Meta{Tenant: tenant})
	if objects {
		return b
	}
	segments, err := b.Segments()
	if err != nil {
		t.Fatal(err)
	}
	if b, err = otlpdata.FromOTLP(segments[0], b.Meta(), otlpdata.Limits{}); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFeedIsBounded(t *testing.T) {
	var hub Hub
	one := told(t, "", false, 3)
	f := hub.Follow("", 2*(one.Size()+batchCost))
	defer f.Close()
	for range 5 {
		hub.Publish(one)
	}
	hub.Publish(told(t, "other", false, 3))
	f.take(t, 3, 9) // what is missed is told first
	hub.Publish(told(t, "", true, 3))
	f.take(t, 3, 0)
	f.take(t, 3, 0)
	f.take(t, 0, 0)
	large := told(t, "", false, 1000)
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

// A batch of several segments stays whole, and one of objects is kept as bytes.
func TestFeedKeepsBytes(t *testing.T) {
	var hub Hub
	f := hub.Follow("", 1<<20)
	defer f.Close()
	several, err := otlpdata.Concat(told(t, "", true, 2), told(t, "", false, 3))
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

// Who waits for Ready gets everything, and closing a feed ends nobody else's.
func TestFeedWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub Hub
		b := told(t, "", false, 1)
		f, closed := hub.Follow("", 1<<20), hub.Follow("", 1<<20)
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
			t.Error("the hub knows feeds that were closed")
		}
	})
}

func BenchmarkPublish(b *testing.B) {
	batch := told(b, "", false, 100)
	var hub Hub
	b.Run("nobody", func(b *testing.B) {
		for b.Loop() {
			hub.Publish(batch)
		}
	})
	b.Run("slow", func(b *testing.B) {
		f := hub.Follow("", 1<<20)
		defer f.Close()
		for b.Loop() {
			hub.Publish(batch)
		}
	})
}
