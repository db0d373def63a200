package clickhouse

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// someCalls returns calls of all types.
func someCalls() *hourWindow {
	w := &hourWindow{callWindow: callWindow{from: 0, to: math.MaxUint64}, number: 7, state: 11}
	f := callFinder{windows: []*callWindow{&w.callWindow}}
	id := func(n byte) otlpdata.SpanID { return otlpdata.SpanID{7: n} }
	f.count([]storequery.CallSpan{
		{ID: id(1), Service: "a", Kind: otlpdata.KindClient, Duration: 5, Peer: "b"},
		{ID: id(2), Parent: id(1), Service: "b", Kind: otlpdata.KindServer, Start: math.MaxUint64, Duration: math.MaxUint64, Failed: true},
		{ID: id(3), Parent: id(2), Service: "b", Duration: 1, Connection: tracestore.ConnectionDatabase, Peer: "db"},
		{ID: id(4), Parent: id(2), Service: "b", Kind: otlpdata.KindProducer, Peer: "queue", Connection: tracestore.ConnectionMessaging},
		{ID: id(5), Parent: id(2), Service: "b", Kind: otlpdata.KindClient, Peer: "host",
			Connection: rows.PeerIsHost | tracestore.ConnectionHTTP},
	})
	return w
}

// TestCachedCalls checks that the row of an hour holds its calls.
func TestCachedCalls(t *testing.T) {
	w := someCalls()
	if n := len(w.table.sums); n != 7 {
		t.Errorf("%d sums, want 4 to services and 3 to peers: %+v", n, w.table.sums)
	}
	row := cachedOf(w)
	got, err := row.sums()
	if err != nil || !reflect.DeepEqual(got, w.table.sorted()) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, w.table.sorted())
	}
	for _, s := range got {
		if host := s.flags&callToHost != 0; host != (s.child == "host") {
			t.Errorf("%q is a host: %t", s.child, host)
		}
	}
}

// TestDamagedCachedCalls checks that invalid rows are refused.
func TestDamagedCachedCalls(t *testing.T) {
	for name, damage := range map[string]func(*cachedHour){
		"missing element":     func(c *cachedHour) { c.first = c.first[1:] },
		"unknown flag":        func(c *cachedHour) { c.flags[0] = 1 << 7 },
		"unknown connection":  func(c *cachedHour) { c.types[0] = uint8(tracestore.Connections) },
		"bucket out of range": func(c *cachedHour) { c.first[0] = tracestore.Buckets },
		"wrong count":         func(c *cachedHour) { c.calls[0]++ },
		"no calls":            func(c *cachedHour) { c.calls[0], c.counts[0] = 0, nil },
		"too many errors":     func(c *cachedHour) { c.errors[0] = c.calls[0] + 1 },
	} {
		c := cachedOf(someCalls())
		damage(&c)
		if _, err := c.sums(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzCachedCalls checks that no row of the cache makes a program fail, and that accepted calls are
// consistent.
func FuzzCachedCalls(f *testing.F) {
	type row struct {
		Parents, Kids            []string
		Flags, Types             []uint8
		Calls, Errors, Durations []uint64
		First                    []uint16
		Counts                   [][]uint64
	}
	f.Add([]byte(`{"Parents":["a"],"Kids":["b"],"Flags":"AQ==","Types":"AQ==","Calls":[1],"Errors":[0],"Durations":[9],"First":[3],"Counts":[[1]]}`))
	f.Add([]byte(`{"Parents":["a"],"Kids":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r row
		if json.Unmarshal(text, &r) != nil {
			return
		}
		c := cachedHour{parents: r.Parents, kids: r.Kids, flags: r.Flags, types: r.Types, calls: r.Calls, errors: r.Errors,
			durations: r.Durations, first: r.First, counts: r.Counts}
		sums, err := c.sums()
		if err != nil {
			return
		}
		for i := range sums {
			if s := &sums[i]; s.durations.Count() != s.calls || s.errors > s.calls {
				t.Errorf("accepted %+v", s)
			}
		}
	})
}

// TestPeerSumsAreLimited checks that peers, which attributes name, cannot fill the memory.
func TestPeerSumsAreLimited(t *testing.T) {
	var table callTable
	for i := range maxPeerSums + 1 {
		table.addPeer(&storequery.CallSpan{Service: "a", Peer: string(rune('a' + i))})
	}
	table.addPeer(&storequery.CallSpan{Service: "a", Peer: "a"})
	if len(table.sums) != maxPeerSums || !table.omitted || table.sums[0].calls != 2 {
		t.Errorf("%d sums, omitted is %t, %d calls to the first", len(table.sums), table.omitted, table.sums[0].calls)
	}
}

// TestHourWindows checks how a window is divided, also at the first and the last hour that a span
// can start in.
func TestHourWindows(t *testing.T) {
	const last, beginOfLast = uint64(math.MaxUint64), math.MaxUint64 / hourLength * hourLength
	c := storedHours{hours: []storedHour{{number: 0}, {number: 10}, {number: 11}, {number: last / hourLength}}}
	hour := func(number uint64) []uint64 { return []uint64{number * hourLength, (number+1)*hourLength - 1} }
	const ten = 10 * hourLength
	for _, test := range []struct {
		from, to uint64
		want     [][]uint64 // first and last time of each part
	}{
		{0, 11*hourLength + 5, [][]uint64{hour(0), hour(10), {11 * hourLength, 11*hourLength + 5}}},
		{11 * hourLength, 12*hourLength - 1, [][]uint64{hour(11)}},
		{12 * hourLength, 13 * hourLength, nil},
		{ten + 7, ten + 8, [][]uint64{{ten + 7, ten + 8}}},
		{ten + 3*minute + 7, ten + 11*minute, [][]uint64{{ten + 3*minute + 7, ten + 4*minute - 1}, {ten + 4*minute, ten + 5*minute - 1},
			{ten + 5*minute, ten + 10*minute - 1}, {ten + 10*minute, ten + 11*minute - 1}, {ten + 11*minute, ten + 11*minute}}},
		{ten + 55*minute, 12*hourLength - 1, [][]uint64{{ten + 55*minute, ten + hourLength - 1}, hour(11)}},
		{last - 1, last, [][]uint64{{last - 1, last}}},
		{beginOfLast, beginOfLast + minute, [][]uint64{{beginOfLast, beginOfLast + minute - 1}, {beginOfLast + minute, beginOfLast + minute}}},
	} {
		var got [][]uint64
		for i, w := range c.windows(test.from, test.to) {
			got = append(got, []uint64{w.from, w.to})
			if w.whole != (w.to-w.from == hourLength-1) || w.index != i || w.number != w.from/hourLength {
				t.Errorf("%d to %d: window %d is %+v", test.from, test.to, i, w)
			}
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%d to %d: %v, want %v", test.from, test.to, got, test.want)
		}
	}
}

// TestHourState checks which changes make cached calls of an hour invalid.
func TestHourState(t *testing.T) {
	of := func(epoch uint64, hours ...storedHour) uint64 {
		around := (&storedHours{hours: hours, epoch: epoch}).around(100)
		return around.state()
	}
	base := of(0, storedHour{number: 100, spans: 5})
	for name, changed := range map[string]uint64{
		"more spans":       of(0, storedHour{number: 100, spans: 6}),
		"earlier parent":   of(0, storedHour{number: 100 - hoursBefore, spans: 1}, storedHour{number: 100, spans: 5}),
		"span after":       of(0, storedHour{number: 100, spans: 5}, storedHour{number: 100 + hoursAfter, spans: 1}),
		"deletion":         of(2, storedHour{number: 100, spans: 5}),
		"moved to another": of(0, storedHour{number: 101, spans: 5}),
	} {
		if changed == base {
			t.Errorf("%s: the cached calls stay valid", name)
		}
	}
	if of(0, storedHour{number: 99 - hoursBefore, spans: 1}, storedHour{number: 100, spans: 5}, storedHour{number: 102, spans: 1}) != base {
		t.Error("distant hours make cached calls invalid")
	}
	stored := time.Unix(1000, 0)
	c := storedHours{hours: []storedHour{{number: 99, stored: stored}, {number: 100}, {number: 102, stored: stored.Add(time.Hour)}},
		now: stored.Add(time.Minute)}
	if around := c.around(100); !around.unchangedFor(time.Minute) || around.unchangedFor(time.Minute+1) {
		t.Errorf("spans were stored a minute ago: %+v", around)
	}
}

// TestPasses checks that windows that are far apart, or with known calls between them, are read in
// several passes, and very many in one.
func TestPasses(t *testing.T) {
	of := func(numbers ...uint64) (windows []*hourWindow) {
		for i, n := range numbers {
			windows = append(windows, &hourWindow{number: n, index: i})
		}
		return windows
	}
	if got := passesOf(nil); len(got) != 0 {
		t.Errorf("passes of nothing: %v", got)
	}
	windows := of(1, 2, 24, 25, 1000)
	if got := passesOf(windows); len(got) != 3 || len(got[0]) != 3 || len(got[1]) != 1 || len(got[2]) != 1 {
		t.Errorf("%d passes", len(got))
	}
	if got := passesOf(slices.Delete(windows, 1, 2)); len(got) != 3 || len(got[0]) != 1 || len(got[1]) != 2 {
		t.Errorf("%d passes without the calls of the second hour", len(got))
	}
	var many []uint64
	for i := range uint64(maxPasses + 1) {
		many = append(many, i*hoursPerPass)
	}
	if got := passesOf(of(many...)); len(got) != 1 || len(got[0]) != maxPasses+1 {
		t.Errorf("%d passes of very many windows", len(got))
	}
}
