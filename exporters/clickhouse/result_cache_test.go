package clickhouse

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// TestSettledHours checks when results that depend on an hour can be cached.
func TestSettledHours(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		what      string
		epoch     uint64
		ago       time.Duration // the last spans were stored
		cluster   string
		endpoints int
		shared    bool
		want      bool
	}{
		{what: "recent spans", ago: time.Second, endpoints: 1},
		{what: "one server", ago: 10 * time.Second, endpoints: 1, want: true},
		{what: "several servers", ago: 10 * time.Second, endpoints: 2},
		{what: "several servers, later", ago: 10 * time.Minute, endpoints: 2, want: true},
		{what: "cluster", ago: 10 * time.Second, endpoints: 1, cluster: "main"},
		{what: "server that replicates by itself", ago: 10 * time.Second, endpoints: 1, shared: true},
		{what: "after a deletion", ago: time.Hour, endpoints: 1, epoch: 2, want: true},
		{what: "during a deletion", ago: time.Hour, endpoints: 1, epoch: 3},
	} {
		e, _ := build(t, func(o *Config, _ *pipeline.Settings) {
			o.Cluster.Name = c.cluster
			for i := range c.endpoints {
				o.Endpoints = append(o.Endpoints[:i], fmt.Sprintf("localhost:%d", i+1))
			}
		})
		e.shared.Store(c.shared)
		hours := storedHours{epoch: c.epoch, now: now, hours: []storedHour{{number: 7, spans: 1, stored: now.Add(-c.ago)}}}
		if got := e.isSettled(&hours); got != c.want {
			t.Errorf("%s: settled is %t", c.what, got)
		}
		if windows := hours.windows(0, 100*hourLength); windows[0].settled && c.epoch%2 != 0 {
			t.Errorf("%s: calls of the hour can be cached", c.what)
		}
		if err := e.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestCachedMemory checks that a cached result holds only its own memory, whose size is counted.
func TestCachedMemory(t *testing.T) {
	counter := storequery.NewFacetCounter(tracestore.FacetQuery{Values: 3})
	for i := range 500 {
		counter.Field(tracestore.Field{Place: tracestore.Name}).AddValue(fmt.Sprint("operation ", i), 1, 0)
	}
	counter.Field(tracestore.Field{Place: tracestore.Name}).AddSpans(500, 0)
	found := tracestore.Aggregate{Facets: counter.Answer(1)}
	own := withOwnFacets(&found)
	if bytes := ownTexts(own.Facets); bytes < 3*60 || bytes > 1000 {
		t.Errorf("the size of three values is %d bytes", bytes)
	}
	for i, v := range own.Facets.Facets[0].Values {
		if before := found.Facets.Facets[0].Values[i].Text; v.Text != before || unsafe.StringData(v.Text) == unsafe.StringData(before) {
			t.Errorf("value %q shares memory with %q", v.Text, before)
		}
	}

	var table callTable
	parent := storequery.CallSpan{Service: "a"}
	for octave := range 20 {
		table.addCall(&parent, &storequery.CallSpan{Service: "b", Kind: otlpdata.KindServer, Duration: 1000 << octave})
	}
	const least = 19 * tracestore.BucketsPerOctave * 8 // bytes of the counts
	if bytes := table.bytes(); bytes < least {
		t.Errorf("the size of a table is %d bytes", bytes)
	}
	s, bytes := table.sums[0].ownCopy()
	if bytes < least {
		t.Errorf("the size of a sum is %d bytes", bytes)
	}
	table.addCall(&parent, &storequery.CallSpan{Service: "b", Kind: otlpdata.KindServer, Duration: 1000})
	if s.calls != 20 || s.durations.Count() != 20 {
		t.Errorf("the copy has %d calls and %d durations", s.calls, s.durations.Count())
	}
}

// TestFullCache checks that the oldest results are removed when a cache is full.
func TestFullCache(t *testing.T) {
	const results, size = 6, 7 << 20
	var c resultCache
	now := time.Unix(1000, 0)
	for i := range results {
		c.store(fmt.Sprint(i), cachedResult{until: now.Add(time.Duration(i+1) * time.Second), size: size, value: i})
	}
	c.store("5", cachedResult{until: now.Add(time.Minute), size: size, value: 5})
	c.store("large", cachedResult{until: now.Add(time.Minute), size: maxResultSize + 1, value: 7})
	for i := range results {
		if found := c.lookup(fmt.Sprint(i), 0, now); found != nil != (i >= 2) {
			t.Errorf("result %d is %v", i, found)
		}
	}
	if c.lookup("large", 0, now) != nil || c.size < 4*size || c.size > maxCacheSize {
		t.Errorf("the results have %d bytes", c.size)
	}
}
