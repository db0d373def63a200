package write

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// A batch without spans is no insert.
func TestEmptyBatch(t *testing.T) {
	eachProtocol(t, func(f *fixture) {
		e := f.start()
		f.must(e, spansOf(f, 0, 1, soon))
		if got := f.query("SELECT count() FROM {db}.payload"); got != "0" {
			f.Errorf("%s rows", got)
		}
	})
}

// A batch of more rows than one insert takes is stored with several, and once if it is sent twice.
func TestHugeBatch(t *testing.T) {
	eachProtocol(t, func(f *fixture) {
		const spans = 120_000
		e, b := f.start(), spansOf(f, spans, 1, soon)
		f.must(e, b)
		want := f.counts()
		f.must(e, b)
		if got := f.counts(); got != want || f.query("SELECT count() FROM {db}.spans") != fmt.Sprint(spans) {
			f.Errorf("after the same batch again:\n%s\nbefore:\n%s", got, want)
		}
		if got := f.query("SELECT uniqExact(batch) FROM {db}.payload"); got != "2" {
			f.Errorf("%s inserts, want 2", got)
		}
	})
}

// A span that is larger than one insert may be is stored.
func TestLargeSpan(t *testing.T) {
	eachProtocol(t, func(f *fixture) {
		var b otlpdata.Builder
		b.Resource(nil)
		for i := range 3 {
			b.Span(&otlpdata.Span{SpanID: otlpdata.SpanID{byte(i)}, Start: soon(0), Attributes: []otlpdata.KeyValue{
				{Key: "text", Value: otlpdata.StringValue(strings.Repeat("x", 1+i%2*70<<20))}}})
		}
		batch, err := otlpdata.FromOTLP(b.Bytes(), otlpdata.Meta{Received: time.Now()}, otlpdata.Limits{Bytes: math.MaxInt})
		if err != nil {
			f.Fatal(err)
		}
		e := f.start()
		f.must(e, batch)
		const size = "length(rest) + arraySum(arrayMap(t -> length(t), texts))"
		if got := f.query("SELECT count(), uniqExact(batch), max(" + size + ") > 73400320 FROM {db}.payload"); got != "3\t3\t1" {
			f.Errorf("spans, inserts, large: %s", got)
		}
	})
}

// Spans of any time are stored, and none is in a partition that expires before its retention ends.
func TestExtremeTimes(t *testing.T) {
	eachProtocol(t, func(f *fixture) {
		day := uint64(24 * time.Hour)
		times := []uint64{0, 1, uint64(math.MaxInt64), math.MaxUint64, soon(0) - 400*day, soon(0) + 400*day,
			soon(0) - 13*day, soon(0), soon(0) + day/2}
		e := f.start()
		f.must(e, spansOf(f, len(times), 1, func(i int) uint64 { return times[i] }))
		if got := f.query("SELECT count(), countIf(odd = 0), countIf(odd = 1 AND day != today()) FROM {db}.spans"); got != "9\t3\t0" {
			f.Errorf("spans, of plausible times, of a wrong day: %s", got)
		}
		f.query("OPTIMIZE TABLE {db}.spans FINAL")
		f.query("OPTIMIZE TABLE {db}.payload FINAL")
		for _, table := range []string{"spans", "payload"} {
			for i, start := range times {
				if got := f.query(fmt.Sprintf("SELECT count() FROM {db}.%s WHERE start = %d", table, start)); got != "1" {
					f.Errorf("%s: %s rows of time %d (%d)", table, got, i, start)
				}
			}
		}
	})
}

// A batch with spans of very many days makes a limited number of partitions.
func TestManyDays(t *testing.T) {
	eachProtocol(t, func(f *fixture) {
		day := uint64(24 * time.Hour)
		e := f.start(unlimited)
		b := spansOf(f, 1000, 1, func(i int) uint64 { return soon(0) - uint64(i)*day })
		f.must(e, b)
		f.must(e, b)
		if got := f.query("SELECT count(), uniqExact(day, odd), countIf(odd = 0) FROM {db}.spans"); got != "1000\t32\t31" {
			f.Errorf("spans, partitions, spans of plausible times: %s", got)
		}
	})
}
