package scantest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Real stores spans in memtables and writes segments of them from time to time.
type Real struct {
	Distribute bool // distribute the spans of a request among the memtables
	tb         testing.TB
	fs         *vfstest.Mem
	mu         sync.Mutex // guards all fields below
	rng        *rand.Rand
	Tables     []*memtable.Table
	Segments   []source.Source
}

// NewReal returns a store of two empty memtables.
func NewReal(tb testing.TB, seed uint64) *Real {
	s := &Real{tb: tb, fs: vfstest.NewMem(), rng: rand.New(rand.NewPCG(seed, 3))}
	s.Tables = append(s.Tables, s.newTable(), s.newTable())
	return s
}

// Sources is a view of fixed sources.
type Sources []source.Source

// Sources implements scan.View.
func (v Sources) Sources() []source.Source { return v }

// Release implements scan.View.
func (v Sources) Release() {}

// View returns a view of what is stored now.
func (s *Real) View() scan.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := append(Sources(nil), s.Segments...)
	for _, t := range s.Tables {
		v = append(v, t.Source())
	}
	return v
}

func (s *Real) newTable() *memtable.Table {
	return memtable.New(memtable.Options{BlockRows: 1 + s.rng.IntN(64)})
}

// Consume implements storetest.Subject.
func (s *Real) Consume(_ context.Context, b *otlpdata.Batch) error {
	if s.Distribute {
		return s.distribute(b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.rng.IntN(len(s.Tables))
	if _, err := s.Tables[i].Append(b, 0); err != nil {
		return err
	}
	if len(s.Segments) < 20 && s.Tables[i].Rows() > 0 && s.rng.IntN(4) == 0 {
		s.Seal(i)
	}
	return nil
}

// distribute stores each span of a request in a random memtable.
func (s *Real) distribute(b *otlpdata.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	share := make([][]byte, len(s.Tables))
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
		if _, err := s.Tables[i].Append(part, 0); err != nil {
			return err
		}
		if s.Tables[i].Rows() > 0 && len(s.Segments) < 10 && s.rng.IntN(8) == 0 {
			s.Seal(i)
		}
	}
	return nil
}

// Seal writes a memtable to a segment and replaces it. Readers may still use the memtable, so it is
// not released.
func (s *Real) Seal(i int) {
	in := s.Tables[i].Input()
	path := fmt.Sprintf("segment%d", len(s.Segments))
	rows := segment.Input{Tables: in.Tables, Rows: in.Rows, Row: in.Row}
	if _, err := segment.Write(s.fs, path, rows, segment.Meta{}, segment.Options{}); err != nil {
		s.tb.Errorf("cannot write segment: %v", err)
		return
	}
	seg, err := segment.Open(s.fs, path)
	if err != nil {
		s.tb.Errorf("cannot open segment: %v", err)
		return
	}
	s.tb.Cleanup(func() { _ = seg.Close() })
	s.Segments = append(s.Segments, seg)
	s.Tables[i] = s.newTable()
}

// SegmentOf writes requests to a segment.
func (s *Real) SegmentOf(tb testing.TB, batches ...*otlpdata.Batch) {
	tb.Helper()
	for _, b := range batches {
		if _, err := s.Tables[0].Append(b, 0); err != nil {
			tb.Fatal(err)
		}
	}
	s.Seal(0)
}
