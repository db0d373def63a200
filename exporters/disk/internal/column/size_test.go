package column

import (
	"fmt"
	"strings"
	"testing"
)

// TestSizes limits the encoded size per value in bytes. The comments give the lower bound: the
// entropy of the distribution from which the sample is drawn.
func TestSizes(t *testing.T) {
	limits := map[string]float64{
		"hex32":         16.01, // 16
		"hex12":         6.01,  // 6
		"hex7":          3.51,  // 3.5
		"uuid":          16.01, // 15.5: the version is a digit
		"path":          1.75,  // 1.661
		"url":           10.27, // 10.198
		"redis":         6.16,  // 6.125
		"sql":           0.03,
		"user":          2.27, // 2.201
		"user-of-trace": 0.43, // 600 users in 1500 values
		"ip":            2.02, // 2
		"agent":         0.38, // 0.323
		"time":          3.40, // 3.296
		"words":         5.7,
		"duration":      3.20, // 3.18
		"duration-us":   1.96, // 1.93
		"port":          0.26, // 0.25
		"status":        0.22, // 0.194
		"thread":        0.76, // 0.75
		"kafka-offset":  2.13, // 2.08
		"size":          1.50, // 1.47
		"clock":         2.72, // 2.67
		"port-few":      1,    // a column of 20 values
		"duration-few":  3.6,
		"start":         3.06,
		"skewed":        2.80,
		"small":         0.22, // 0.198
		"price":         2.12, // 2.076
		"single":        3.28,
		"any":           6.92,
	}
	e := NewEncoder(Flush)
	checkSizes(t, limits, stringSamples(), e.Strings)
	checkSizes(t, limits, numberSamples(), e.Uint64s)
	checkSizes(t, limits, intSamples(), e.Int64s)
	checkSizes(t, limits, floatSamples(), e.Float64s)
}

func checkSizes[T any](t *testing.T, limits map[string]float64, samples []sample[T], encode func([]byte, []T) []byte) {
	t.Helper()
	for _, s := range samples {
		limit, ok := limits[s.name]
		if !ok {
			t.Errorf("%s: no limit", s.name)
		}
		if got := float64(len(encode(nil, s.v))) / float64(len(s.v)); got > limit {
			t.Errorf("%s: %.3f bytes per value, want at most %.3f", s.name, got, limit)
		}
	}
}

// TestRunsAreClassifiedPerColumn checks that one template covers a column even if single values
// look like a different kind.
func TestRunsAreClassifiedPerColumn(t *testing.T) {
	for name, f := range map[string]func(i int) string{
		"hex ids that are all digits": func(i int) string {
			if i%10 == 0 {
				return fmt.Sprintf("id-%08d", i*7919)
			}
			return fmt.Sprintf("id-%08x", uint32(i*2654435761))
		},
		"leading zeros":            func(i int) string { return fmt.Sprintf("%06d", i*241%1000000) },
		"numbers of every length":  func(i int) string { return fmt.Sprint("n", i*i*i) },
		"numbers that are not hex": func(i int) string { return fmt.Sprint("order ", 10_000_000+i*7919) },
		"hex beside lower letters": func(i int) string { return fmt.Sprintf("x%08xyz", uint32(i*2654435761)|0xa0000000) },
	} {
		v := make([]string, 1000)
		for i := range v {
			v[i] = f(i)
		}
		e := NewEncoder(Flush)
		if b := e.Strings(nil, v); b[0] != stringsSplit || b[1] != 1 {
			t.Errorf("%s: method %d, %d templates", name, b[0], b[1])
		}
	}
}

// TestScratchIsReused checks that coders do not allocate memory per value. The maxAllocs
// allocations per column are for the returned strings and for buffers that the compressor's pools
// lose to the garbage collector; the race detector increases the latter.
func TestScratchIsReused(t *testing.T) {
	const maxAllocs = 10
	e, d := NewEncoder(Flush), NewDecoder()
	numbers, texts := numberSamples()[0].v, stringSamples()[0].v
	var buf []byte
	out, strs := make([]uint64, len(numbers)), make([]string, len(texts))
	if n := testing.AllocsPerRun(20, func() { buf = e.Uint64s(buf[:0], numbers) }); n > maxAllocs {
		t.Errorf("%v allocations to encode numbers", n)
	}
	if n := testing.AllocsPerRun(20, func() {
		if err := d.Uint64s(buf, out); err != nil {
			t.Fatal(err)
		}
	}); n > maxAllocs {
		t.Errorf("%v allocations to decode numbers", n)
	}
	if n := testing.AllocsPerRun(20, func() { buf = e.Strings(buf[:0], texts) }); n > maxAllocs {
		t.Errorf("%v allocations to encode strings", n)
	}
	if n := testing.AllocsPerRun(20, func() {
		if err := d.Strings(buf, strs); err != nil {
			t.Fatal(err)
		}
	}); n > maxAllocs {
		t.Errorf("%v allocations to decode strings", n)
	}
}

// TestLargeBuffersAreReleased checks that coders do not retain the buffers of a huge column.
func TestLargeBuffersAreReleased(t *testing.T) {
	c := newCoders()
	check(t, c, texts(), []string{strings.Repeat("0123456789 abcdef ", 1<<18), "x1", "y2"})
	for name, n := range map[string]int{
		"text": cap(c.flush.text), "second": cap(c.flush.second), "frame": cap(c.flush.z.buf), "template": cap(c.flush.splitter.template),
		"read frame": cap(c.d.z.frame), "raw": cap(c.d.raw),
	} {
		if n > maxReusable {
			t.Errorf("buffer %s has %d bytes", name, n)
		}
	}
}
