package stats

import (
	"bytes"
	"errors"
	"math"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// goldenCollector returns a collector with all kinds of entries.
func goldenCollector() *Collector {
	spans := randomSpans(7, 60)
	for i := range 40 { // a histogram with counts that take several nibbles
		spans = append(spans, span{series: spans[0].series, parent: "a", start: 1_700_000_000e9, duration: uint64(1e6 + i*i*1000)})
	}
	spans = append(spans, span{parent: "b", start: math.MaxUint64, duration: math.MaxUint64, kind: Messaging})
	c := collect(spans)
	c.dropped, c.callsDropped, c.orphansDropped = 1, 2, 3
	return c
}

// goldenUnsampled returns a section with unsampled series.
func goldenUnsampled() []byte { return collect(sampled(7, 60)).AppendSeries(nil) }

// decoders decode a complete section and return its number of points.
var decoders = [3]func(section []byte) (points int, err error){
	func(b []byte) (n int, err error) {
		s, err := DecodeSeries(b)
		if err != nil {
			return 0, err
		}
		for p := range s.Points(0, math.MaxUint64) {
			if n++; p.Series >= len(s.Series) || p.Minute > MinuteOf(math.MaxUint64) || p.Durations.Count() == 0 {
				return 0, errors.New("invalid point")
			}
		}
		return n, nil
	},
	func(b []byte) (n int, err error) {
		s, err := DecodeEdges(b)
		if err != nil {
			return 0, err
		}
		for p := range s.Points(0, math.MaxUint64) {
			if n++; p.Edge >= len(s.Edges) || p.Minute > MinuteOf(math.MaxUint64) || p.Calls == 0 || p.Errors > p.Calls {
				return 0, errors.New("invalid point")
			}
		}
		return n, nil
	},
	func(b []byte) (n int, err error) {
		s, err := DecodeOrphans(b)
		if err != nil {
			return 0, err
		}
		for o := range s.Orphans(0, math.MaxUint64) {
			if n++; o.Minute > MinuteOf(math.MaxUint64) {
				return 0, errors.New("invalid orphan")
			}
		}
		if n != s.Len() {
			return 0, errors.New("some orphans are not there")
		}
		return n, nil
	},
}

var sectionNames = [3]string{"series", "edges", "orphans"}

func TestGolden(t *testing.T) {
	all := sections(goldenCollector())
	for i, got := range append(all[:], goldenUnsampled()) {
		name, i := filepath.Join("testdata", append(sectionNames[:], "series-extra")[i]+".golden"), i%len(all)
		want := golden.Check(t, name, got)
		if n, err := decoders[i](want); err != nil || n == 0 {
			t.Errorf("%s: %d points, %v", name, n, err)
		}
	}
}

func TestEmptySections(t *testing.T) {
	for i, b := range sections(NewCollector()) {
		if n, err := decoders[i](b); n != 0 || err != nil {
			t.Errorf("%s: %d points, %v", sectionNames[i], n, err)
		}
		if len(b) > 5 {
			t.Errorf("%s: empty section takes %d bytes", sectionNames[i], len(b))
		}
	}
	s, err := DecodeSeries(NewCollector().AppendSeries(nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := s.Minutes(); ok {
		t.Error("Minutes of an empty section is ok")
	}
}

func TestDamagedSectionsAreRejected(t *testing.T) {
	all := sections(goldenCollector())
	for i, b := range append(all[:], goldenUnsampled()) {
		i := i % len(all)
		for n := range b {
			if _, err := decoders[i](b[:n:n]); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: %d of %d bytes: %v", sectionNames[i], n, len(b), err)
			}
		}
		longer := append(b[:len(b):len(b)], 0)
		newer, zero := append([]byte{version + 1}, b[1:]...), append([]byte{0}, b[1:]...)
		for name, bad := range map[string][]byte{"longer": longer, "newer": newer, "version 0": zero} {
			if _, err := decoders[i](bad); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s, %s: %v", sectionNames[i], name, err)
			}
		}
	}
}

func TestInvalidNumbersAreRejected(t *testing.T) {
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	series := []byte{version, 0, 1, 0, 1, 0, 0, 0, 0} // one text, one series
	edges := []byte{version, 0, 1, 0, 1, 0, 0, byte(Inner)}
	orphans := []byte{version, 0, 1, 0, 1, 0, 0}
	cat := func(parts ...[]byte) (out []byte) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	for name, c := range map[string]struct {
		decoder int
		section []byte
	}{
		"dropped":           {0, cat([]byte{version}, huge)},
		"texts":             {0, cat([]byte{version, 0}, huge)},
		"text order":        {0, []byte{version, 0, 2, 1, 'b', 1, 'a', 0, 0}},
		"series":            {0, cat([]byte{version, 0, 0}, huge)},
		"series without":    {0, []byte{version, 0, 0, 1, 0, 0, 0, 0, 0}},
		"series kind":       {0, []byte{version, 0, 1, 0, 1, 0, 0, 0, 4, 0}},
		"extra repeated":    {0, []byte{version, 0, 1, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0}},
		"extra first":       {0, []byte{version, 0, 1, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0}},
		"series repeated":   {0, []byte{version, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		"minutes":           {0, cat(series, huge)},
		"minute":            {0, cat(series, []byte{1}, huge, []byte{1, 5, 0, 1, 0, 0, 1})},
		"points":            {0, cat(series, []byte{1, 0}, huge, huge)},
		"points of nothing": {0, cat(series, []byte{1, 0, 0, 0})},
		"body":              {0, cat(series, []byte{1, 0, 1}, huge)},
		"point name":        {0, cat(series, []byte{1, 0, 1, 5, 1, 1, 0, 0, 1})},
		"point buckets":     {0, cat(series, []byte{1, 0, 1, 6, 0, 1, 0xff, 0x7f, 0, 1})},
		"point bucket":      {0, cat(series, []byte{1, 0, 1, 6, 0, 1, 0, 0x80, 0x10, 1})},
		"point skips":       {0, cat(series, []byte{1, 0, 1, 10, 0, 1, 1, 0, 0xf1, 0xff, 0xff, 0xff, 0x0f, 1})},
		"point count":       {0, cat(series, []byte{1, 0, 1, 16, 0, 1, 0, 0}, bytes.Repeat([]byte{0xff}, 11), []byte{0x7f})},
		"points repeated":   {0, cat(series, []byte{1, 0, 2, 10, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1})},
		"edge without":      {1, []byte{version, 0, 0, 1, 0, 0, 0, 0}},
		"edge child":        {1, []byte{version, 0, 1, 0, 1, 0, 0, 32, 0}},
		"edge repeated":     {1, []byte{version, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0}},
		"edge errors":       {1, cat(edges, []byte{1, 0, 1, 4, 0, 0, 2, 0})},
		"edge calls":        {1, cat(edges, []byte{1, 0, 1, 12, 0}, huge, []byte{0, 0})},
		"orphan repeated":   {2, []byte{version, 0, 1, 0, 2, 0, 0, 0, 0, 0}},
		"orphan service":    {2, cat(orphans, []byte{1, 0, 1, 3, 16<<3 | flagSameParent, 16, 0})},
		"orphan trace":      {2, cat(orphans, []byte{1, 0, 1, 3, 17<<3 | flagSameParent, 0, 0})},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decoders[c.decoder](c.section)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrCorrupt) || got > 1<<15 {
			t.Errorf("%s: got %v, allocated %d bytes", name, err, got)
		}
	}
	for i, ok := range [][]byte{cat(series, []byte{1, 0, 1, 5, 0, 1, 0, 0, 1}), cat(edges, []byte{1, 0, 1, 4, 0, 0, 1, 0}),
		cat(orphans, []byte{1, 0, 1, 3, 16<<3 | flagSameParent, 0, 0})} {
		if n, err := decoders[i](ok); n != 1 || err != nil {
			t.Errorf("%s: valid section has %d points, %v", sectionNames[i], n, err)
		}
	}
}

// TestSharedParents checks that siblings, and trace ids with a common prefix, are encoded
// compactly.
func TestSharedParents(t *testing.T) {
	size := func(orphans int) int {
		c := NewCollector()
		for i := range orphans {
			c.AddOrphan(otlpdata.TraceID{1, 2, 3}, otlpdata.SpanID{4}, c.ServiceID("t", "s"), 0, 0, uint64(i%100), false)
		}
		return len(c.AppendOrphans(nil))
	}
	if perOrphan := (size(101) - size(1)) / 100; perOrphan != 3 {
		t.Errorf("sibling takes %d bytes, want 3", perOrphan)
	}
}

func fuzzDecoder(f *testing.F, i int) {
	f.Add(sections(goldenCollector())[i])
	f.Add(sections(NewCollector())[i])
	f.Add(goldenUnsampled())
	f.Fuzz(func(t *testing.T, section []byte) {
		n, err := decoders[i](section)
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
		if n > len(section) {
			t.Errorf("%d bytes hold %d points", len(section), n)
		}
	})
}

func FuzzDecodeSeries(f *testing.F)  { fuzzDecoder(f, 0) }
func FuzzDecodeEdges(f *testing.F)   { fuzzDecoder(f, 1) }
func FuzzDecodeOrphans(f *testing.F) { fuzzDecoder(f, 2) }
