package scan

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

type emptyView struct{}

func (emptyView) Sources() []source.Source { return nil }
func (emptyView) Release()                 {}

// TestDecodeEndsWithContext checks that Decode returns the error of its context while it waits for
// a decoder.
func TestDecodeEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStore(func() View { return emptyView{} }, Options{Decoders: 1})
		s.decoders <- struct{}{}
		ctx, cancel := context.WithCancel(t.Context())
		var failed error
		go func() {
			session := s.Begin()
			defer session.Release()
			failed = session.Decode(ctx, func() error {
				t.Error("Decode called its function although no decoder was free")
				return nil
			})
		}()
		synctest.Wait()
		if failed != nil {
			t.Errorf("Decode returned %v while all decoders were busy", failed)
		}
		cancel()
		synctest.Wait()
		if !errors.Is(failed, context.Canceled) {
			t.Errorf("Decode returned %v, want context.Canceled", failed)
		}
	})
}

// While spans arrive, queries use one decoder less, and at least one.
func TestDecodersWhileBusy(t *testing.T) {
	f := func(decoders int, busy bool, want int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := NewStore(func() View { return emptyView{} }, Options{Decoders: decoders, Busy: func() bool { return busy }})
			running, end := 0, make(chan struct{})
			var mu sync.Mutex
			for range 5 {
				go func() {
					session := s.Begin()
					defer session.Release()
					if err := session.Decode(t.Context(), func() error {
						mu.Lock()
						running++
						mu.Unlock()
						<-end
						return nil
					}); err != nil {
						t.Error(err)
					}
				}()
			}
			synctest.Wait()
			if running != want {
				t.Errorf("%d calls run with %d decoders, busy %t, want %d", running, decoders, busy, want)
			}
			close(end)
			synctest.Wait() // all calls end
		})
	}
	f(3, false, 3)
	f(3, true, 2)
	f(1, true, 1)
}
