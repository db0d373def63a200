package scan

import (
	"context"
	"errors"
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
