package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

// realStore deals spans among memtables and makes segments of them now and then.
type realStore struct {
	*Engine
	tb       testing.TB
	fs       *vfstest.Mem
	mu       sync.Mutex // guards all below
	rng      *rand.Rand
	tables   []*memtable.Table
	segments []source.Source
}

type realView []source.Source

func (v realView) Sources() []source.Source { return v }
func (v realView) Release()                 {}

func (s *realStore) view() View {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := append(realView(nil), s.segments...)
	for _, t := range s.tables {
		v = append(v, t.Source())
	}
	return v
}

func (s *realStore) newTable() *memtable.Table {
	return memtable.New(memtable.Options{BlockRows: 1 + s.rng.IntN(64)})
}

func (s *realStore) Consume(_ context.Context, b *otlpdata.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	share := make([][]byte, len(s.tables))
	err := tracestore.WalkSpans(b, func(sp tracestore.Span) error {
		i := s.rng.IntN(len(share))
		share[i] = otlpdata.AppendResourceSpans(share[i], sp.Resource, sp.Scope, sp.Raw)
		return nil
	})
	if err != nil {
		return err
	}
	for i, enc := range share {
		part, err := otlpdata.FromOTLP(enc, b.Meta(), otlpdata.Limits{})
		if err != nil {
			return err
		}
		if _, err := s.tables[i].Append(part, 0); err != nil {
			return err
		}
		if s.tables[i].Rows() > 0 && len(s.segments) < 10 && s.rng.IntN(8) == 0 {
			s.seal(i)
		}
	}
	return nil
}

// seal makes a segment of a memtable. Readers may still use the memtable, so it is not released.
func (s *realStore) seal(i int) {
	in := s.tables[i].Input()
	path := fmt.Sprintf("segment%d", len(s.segments))
	rows := segment.Input{Tables: in.Tables, Rows: in.Rows, Row: in.Row}
	if _, err := segment.Write(s.fs, path, rows, segment.Meta{}, segment.Options{}); err != nil {
		s.tb.Errorf("writing a segment: %v", err)
		return
	}
	seg, err := segment.Open(s.fs, path)
	if err != nil {
		s.tb.Errorf("opening a segment: %v", err)
		return
	}
	s.tb.Cleanup(func() { _ = seg.Close() })
	s.segments = append(s.segments, seg)
	s.tables[i] = s.newTable()
}

// The suite runs on what the store is made of, too.
func TestStoreOfMemtablesAndSegments(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	storetest.Store(t, func(tb testing.TB) storetest.Subject {
		s := &realStore{tb: tb, fs: vfstest.NewMem(), rng: rand.New(rand.NewPCG(seed, 2))}
		s.tables = []*memtable.Table{s.newTable(), s.newTable()}
		s.Engine = New(s.view, Options{OnDamage: func(e *source.DamageError) { tb.Errorf("damage: %v", e) }})
		return withoutCalls(s)
	})
}
