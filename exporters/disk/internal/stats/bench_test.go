package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// observation is a span as a segment writer counts it.
type observation struct {
	series          uint32
	start, duration uint64
}

// load returns a collector with series, and n spans of two minutes in nearly ascending order. The
// durations of each series are spread around one value.
func load(n, series int) (*Collector, []observation) {
	r := rand.New(rand.NewPCG(1, 2))
	c := NewCollector()
	kinds := []string{"server", "client", "internal"}
	typical := make([]float64, series)
	for i := range series {
		typical[i] = math.Exp(r.Float64()*8 + 11)
		c.SeriesID(Series{Service: fmt.Sprintf("service-%d", i%40), Operation: fmt.Sprintf("GET /api/v1/resource-%d/{id}", i/40),
			Kind: kinds[i%3], Error: i%16 == 0})
	}
	out := make([]observation, n)
	for i := range out {
		s := min(r.IntN(series), r.IntN(series))
		out[i] = observation{uint32(s), 1_700_000_070e9 + uint64(i)*uint64(58e9/n) + r.Uint64N(2e9),
			uint64(typical[s] * math.Exp(r.NormFloat64()*0.6))}
	}
	return c, out
}

func BenchmarkSpan(b *testing.B) {
	for _, bb := range []struct {
		name  string
		start func(i int, start uint64) uint64
	}{
		{"two minutes", func(_ int, start uint64) uint64 { return start }},
		{"every span in a minute of its own", func(i int, _ uint64) uint64 { return uint64(i) * 7 * nanosPerMinute }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			const n = 500_000
			for b.Loop() {
				b.StopTimer()
				c, spans := load(n, 1500)
				b.StartTimer()
				for i := range spans {
					c.AddSpan(spans[i].series, bb.start(i, spans[i].start), spans[i].duration)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/span")
		})
	}
}

func BenchmarkAppendSeries(b *testing.B) {
	const n = 500_000
	c, spans := load(n, 1500)
	for _, s := range spans {
		c.AddSpan(s.series, s.start, s.duration)
	}
	var section []byte
	for b.Loop() {
		section = c.AppendSeries(section[:0])
	}
	b.ReportMetric(float64(len(section))/n, "B/span")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/span")
	b.ReportMetric(float64(c.cells.used), "cells")
}

func BenchmarkPoints(b *testing.B) {
	c, spans := load(500_000, 1500)
	for _, s := range spans {
		c.AddSpan(s.series, s.start, s.duration)
	}
	section := c.AppendSeries(nil)
	for b.Loop() {
		s, err := DecodeSeries(section)
		if err != nil {
			b.Fatal(err)
		}
		var all tracestore.Histogram
		for p := range s.Points(0, math.MaxUint64) {
			all.Add(&p.Durations)
		}
		if all.Count() != 500_000 {
			b.Fatal("points are missing")
		}
	}
}

func BenchmarkEdge(b *testing.B) {
	c := NewCollector()
	var services [40]uint32
	for i := range services {
		services[i] = c.ServiceID("", fmt.Sprintf("service-%d", i))
	}
	i := 0
	for b.Loop() {
		i++
		c.AddEdge(services[i%40], services[i%37], 0, uint64(i)*100_000, uint64(i), i%50 == 0)
	}
}

func BenchmarkOrphans(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	c := NewCollector()
	const n = 5000
	var tr otlpdata.TraceID
	for i := range n {
		if i%2 == 0 {
			for j := range tr {
				tr[j] = byte(r.Uint32())
			}
		}
		parent := otlpdata.SpanID{byte(r.Uint32()), byte(r.Uint32()), byte(i), byte(i >> 8)}
		c.AddOrphan(tr, parent, c.ServiceID("", fmt.Sprint(r.IntN(40))), 0, 1_700_000_010e9+r.Uint64N(6e10), r.Uint64N(1e9), i%100 == 0)
	}
	var section []byte
	for b.Loop() {
		section = c.AppendOrphans(section[:0])
	}
	b.ReportMetric(float64(len(section))/n, "B/orphan")
}
