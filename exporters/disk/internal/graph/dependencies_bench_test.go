package graph

import (
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
)

// BenchmarkDependencies counts calls and calls to peers of a memtable, of a whole segment and its
// rows, and of segments that cut most traces.
func BenchmarkDependencies(b *testing.B) {
	const spans = 100_000
	s := newRealStore(b, 1, scan.Options{})
	s.Tables[0] = memtable.New(memtable.Options{})
	for r := range bench.New(7, scantest.Day).Requests(spans, 512) {
		batch, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.Limits{})
		scantest.Must(err)
		_, err = s.Tables[0].Append(batch, 0)
		scantest.Must(err)
	}
	table := s.Tables[0]
	run := func(name string, src ...source.Source) {
		e := New(scan.NewStore(func() scan.View { return scantest.Sources(src) }, scan.Options{}))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g, err := e.Dependencies(b.Context(), "", time.Time{}, time.Time{})
				scantest.Must(err)
				if len(g.Edges) < 100 {
					b.Fatalf("%d edges", len(g.Edges))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/spans, "ns/span")
		})
		b.Run("peers of "+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g, err := e.Peers(b.Context(), "", time.Time{}, time.Time{})
				scantest.Must(err)
				if len(g.Edges) < 30 {
					b.Fatalf("%d edges", len(g.Edges))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/spans, "ns/span")
		})
	}
	run("memtable", table.Source())
	s.Seal(0)
	run("segment", s.Segments[0])
	run("segment rows", flawed{Segment: s.Segments[0].(*segment.Segment), dropped: 1})
	s.Segments = nil
	for r := range bench.New(7, scantest.Day).Requests(spans, 512) {
		batch, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.Limits{})
		scantest.Must(err)
		_, err = s.Tables[0].Append(batch, 0)
		scantest.Must(err)
		if s.Tables[0].Rows() > spans/5 {
			s.Seal(0)
		}
	}
	s.Seal(0)
	run("segments", s.Segments...)
}
