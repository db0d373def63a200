package explain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// countSpans counts traces of one span of one service each. attributes returns the attributes of a
// trace.
func countSpans(t *testing.T, n int, attributes func(i int) (selected bool, kvs []otlpdata.KeyValue)) *counter {
	t.Helper()
	c := newCounter(nil, nil)
	for i := range n {
		selected, kvs := attributes(i)
		if err := c.beginTrace(selected); err != nil {
			t.Fatal(err)
		}
		r := &otlpdata.Resource{Service: "web", Raw: []byte("web")}
		c.span(tracestore.Span{Resource: r, Span: &otlpdata.Span{Start: 1000, End: uint64(2000 + i), Attributes: kvs}})
	}
	return c
}

func text(key, value string) otlpdata.KeyValue {
	return otlpdata.KeyValue{Key: key, Value: otlpdata.StringValue(value)}
}

func number(key string, n float64) otlpdata.KeyValue {
	return otlpdata.KeyValue{Key: key, Value: otlpdata.DoubleValue(n)}
}

// describe writes a list on one line for each attribute.
func describe(list attributeList) (out []string) {
	for _, l := range list.lines {
		line := l.key.key
		switch v := l.values; v.op {
		case equals:
			line += " = " + v.text
		case exists:
			line += " exists"
		case between:
			line += fmt.Sprintf(" from %v to %v, deciles %d to %d", v.low, v.high, v.first, v.last)
		}
		for _, s := range l.same {
			line += ", " + s.key.key
		}
		out = append(out, line)
	}
	return out
}

// TestRankAttributes checks which conditions are found, their order, and what is folded.
func TestRankAttributes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	c := countSpans(t, 3000, func(i int) (bool, []otlpdata.KeyValue) {
		selected := i%10 == 0
		pick := func(yes, no float64) bool { return selected && r.Float64() < yes || !selected && r.Float64() < no }
		var kvs []otlpdata.KeyValue
		host := "a"
		if pick(0.9, 0.1) {
			host = "b"
		}
		kvs = append(kvs, text("host", host), text("pod", "pod-"+host), text("noise", fmt.Sprint(r.IntN(8))), text("id", fmt.Sprint(i)))
		amount, retries := 100*r.Float64(), 0.0
		if selected {
			amount = 70 + 30*r.Float64()
		}
		if pick(0.6, 0.02) {
			retries = float64(1 + r.IntN(3))
		}
		kvs = append(kvs, number("amount", amount), number("retries", retries))
		if pick(0.3, 0) {
			kvs = append(kvs, text("failure", fmt.Sprint("id ", i)))
		}
		return selected, kvs
	})
	list := c.rankAttributes()
	got := describe(list)
	want := []string{"host = b, pod", "amount from 7", "retries from 1 to +Inf, deciles 10 to 10", "failure exists"}
	if !slices.EqualFunc(got, want, strings.HasPrefix) || !strings.HasSuffix(got[1], "to +Inf, deciles 8 to 10") {
		t.Errorf("lines %q", got)
	}
	if list.tested != 6 || list.differ != 5 { // id has nothing to test; pod counts
		t.Errorf("%d keys tested, %d differ", list.tested, list.differ)
	}
	for _, l := range list.lines {
		if want := c.split(l.traces); l.has != want {
			t.Errorf("%s: counts %+v, want %+v", l.key.key, l.has, want)
		}
	}
}

// TestLongBytes checks that a long value that is not UTF-8 is an ordinary line.
func TestLongBytes(t *testing.T) {
	long := strings.Repeat("\xff", 2*storequery.MaxFacetText)
	c := countSpans(t, 100, func(i int) (bool, []otlpdata.KeyValue) {
		if i%2 == 0 {
			return true, []otlpdata.KeyValue{text("raw", long)}
		}
		return false, nil
	})
	lines := c.answer(weights{1, 1}).Lines
	if len(lines) != 1 || lines[0].Field != "span.raw" || lines[0].Filter == "" {
		t.Errorf("%+v", lines)
	}
}

// TestRankAttributesByChance checks that hardly anything is found if nothing differs.
func TestRankAttributesByChance(t *testing.T) {
	found := 0
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		c := countSpans(t, 400, func(i int) (bool, []otlpdata.KeyValue) {
			kvs := []otlpdata.KeyValue{number("n", r.NormFloat64()), number("m", float64(r.IntN(5)))}
			for k := range 20 {
				kvs = append(kvs, text(fmt.Sprint("k", k), fmt.Sprint(int(r.ExpFloat64()*float64(k)))))
			}
			return r.Float64() < 0.1, kvs
		})
		if len(c.rankAttributes().lines) > 0 {
			found++
		}
	}
	if found > 4 { // 1 expected
		t.Errorf("attributes differ in %d of 100 runs", found)
	}
}

// TestResourceAttributes checks that attributes of a resource are compared among the traces of its
// service, so that a service that is called more often is not listed with all of its attributes.
func TestResourceAttributes(t *testing.T) {
	c := newCounter(nil, nil)
	for i := range 1000 {
		selected := i%5 == 0
		if err := c.beginTrace(selected); err != nil {
			t.Fatal(err)
		}
		host := "a"
		if i%10 == 0 || i%7 == 0 {
			host = "b"
		}
		span := func(service, raw string, kvs ...otlpdata.KeyValue) {
			r := &otlpdata.Resource{Service: service, Raw: []byte(raw), Attributes: append(kvs, text("service.name", service), text("zone", "z"))}
			c.span(tracestore.Span{Resource: r, Span: &otlpdata.Span{Start: 1, End: 2}})
		}
		span("web", "web"+host, text("host", host))
		if selected || i%3 == 0 {
			span("rare", "rare")
		}
	}
	list := c.rankAttributes()
	if got := describe(list); len(got) != 1 || got[0] != "host = b" || list.lines[0].key.service != "web" || list.tested != 1 {
		t.Errorf("lines %q, %d keys tested", got, list.tested)
	}
}

// TestRenamedAttributes checks that all names of an attribute are one key, and that only the newest
// name of a span counts.
func TestRenamedAttributes(t *testing.T) {
	c := newCounter(nil, nil)
	c.language.Names = func(key string) string {
		if key == "size" {
			return ""
		}
		return tracestore.JoinNames("new", "middle", "old")
	}
	for i := range 900 {
		selected, value := i%5 == 0, "a"
		if selected {
			value = "b"
		}
		kvs := [][]otlpdata.KeyValue{
			{text("old", value)}, {text("middle", value)}, {text("new", value)},
			{text("old", "former"), text("new", value)}, {text("new", value), text("middle", "former")},
			{text("old", "former"), text("middle", value)},
		}[i%6]
		if err := c.beginTrace(selected); err != nil {
			t.Fatal(err)
		}
		r := &otlpdata.Resource{Service: "web", Raw: fmt.Append(nil, i%30), Attributes: kvs}
		c.span(tracestore.Span{Resource: r, Span: &otlpdata.Span{Start: 1, End: 2, Attributes: append(kvs, text("size", "1"))}})
	}
	list := c.rankAttributes()
	if got := describe(list); len(got) != 1 || got[0] != "new = b, new" || list.tested != 2 {
		t.Errorf("lines %q, %d keys tested", got, list.tested)
	}
	for _, k := range c.keys {
		if k.values["former"] != nil && len(k.values["former"].traces) > 0 {
			t.Errorf("values of older names count: %v", k.values["former"].traces)
		}
	}
}

// TestRenamedKeysAreCopied checks that the keys of a counter do not refer to the memory of spans,
// and that each name is counted as memory.
func TestRenamedKeysAreCopied(t *testing.T) {
	c := newCounter(nil, nil)
	names := tracestore.JoinNames("new", "old")
	c.language.Names = func(string) string { return names }
	for _, name := range []string{"old", "new"} {
		span := []byte("web" + name)
		service, key := unsafe.String(&span[0], 3), unsafe.String(&span[3], 3)
		for _, id := range []keyID{{tracestore.SpanAttribute, key, ""}, {tracestore.ResourceAttribute, key, service}} {
			before := c.memory
			c.value(id, service, otlpdata.StringValue("a"))
			if more := c.memory - before; more < keyMemory {
				t.Errorf("%+v: memory grew by %d bytes, want at least %d", id, more, keyMemory)
			}
		}
		clear(span)
	}
	for _, id := range []keyID{{tracestore.SpanAttribute, "new", ""}, {tracestore.ResourceAttribute, "new", "web"}} {
		k := c.renamed[id]
		if k == nil || k != c.renamed[keyID{id.place, names, id.service}] || k.key != "new" || k.service != id.service || k.owner != "web" {
			t.Errorf("%+v: %+v", id, k)
		}
	}
}

// TestMoreSpans checks that values are not listed only because selected traces have more spans,
// which makes each value more likely.
func TestMoreSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	c := newCounter(nil, nil)
	for i := range 2000 {
		selected := i%10 == 0
		if err := c.beginTrace(selected); err != nil {
			t.Fatal(err)
		}
		calls := 1
		if selected {
			calls = 3
		}
		for range calls {
			kvs := []otlpdata.KeyValue{text("instance", fmt.Sprint(r.IntN(4))), text("region", []string{"north", "south"}[min(r.IntN(10), 1)])}
			if selected {
				kvs[1] = text("region", "north")
			}
			c.span(tracestore.Span{Resource: &otlpdata.Resource{Service: "web", Raw: []byte("web")}, Span: &otlpdata.Span{Attributes: kvs}})
		}
	}
	if got := describe(c.rankAttributes()); len(got) != 1 || got[0] != "region = north" {
		t.Errorf("lines %q", got)
	}
}

// TestTooFewTraces checks that nothing is listed for fewer than 30 traces on a side.
func TestTooFewTraces(t *testing.T) {
	for _, selected := range []int{29, 30, 971} {
		c := countSpans(t, 1000, func(i int) (bool, []otlpdata.KeyValue) {
			return i < selected, []otlpdata.KeyValue{text("side", fmt.Sprint(i < selected))}
		})
		if got := len(c.rankAttributes().lines); (got == 1) != (selected == 30) {
			t.Errorf("%d lines for %d selected traces", got, selected)
		}
	}
}

// TestCounterForgets checks that keys with very many values keep the frequent ones, within the
// limits.
func TestCounterForgets(t *testing.T) {
	c := countSpans(t, 6000, func(i int) (bool, []otlpdata.KeyValue) {
		kvs := []otlpdata.KeyValue{text("id", fmt.Sprint(i))}
		if i%20 == 0 {
			kvs[0] = text("id", "frequent")
		}
		return i%2 == 0, append(kvs, text(fmt.Sprint("key", i), "v"))
	})
	k := c.keys[keyID{place: tracestore.SpanAttribute, key: "id"}]
	if n := len(k.values); n > maxDistinct || len(k.values["frequent"].traces) != 300 || len(c.keys) != maxKeys || !c.omitted {
		t.Errorf("%d values, %d keys", n, len(c.keys))
	}
	values := 0
	for _, k := range c.keys {
		values += len(k.values)
	}
	if values != c.values {
		t.Errorf("%d values are counted as %d", values, c.values)
	}
}

// TestCounterMemory checks that a counter reserves memory, and reports that there is none.
func TestCounterMemory(t *testing.T) {
	account := &limited{limit: 256 << 10}
	m, err := tracestore.Reserve(tracestore.WithAccount(t.Context(), account), 0)
	if err != nil {
		t.Fatal(err)
	}
	c := newCounter(m, nil)
	for i := range 100_000 {
		if err = c.beginTrace(false); err != nil {
			break
		}
		kvs := []otlpdata.KeyValue{text(fmt.Sprint("k", i%500), fmt.Sprint(i))}
		c.span(tracestore.Span{Resource: &otlpdata.Resource{Raw: []byte{1}}, Span: &otlpdata.Span{Attributes: kvs}})
	}
	if !tracestore.IsOutOfMemory(err) || len(c.traces) < 500 {
		t.Errorf("%d traces, %v", len(c.traces), err)
	}
	c.charged = 0 // as in a trace with many large values
	for i := 0; err != nil && i < 10_000; i++ {
		c.span(tracestore.Span{Resource: &otlpdata.Resource{Raw: []byte{2}}, Span: &otlpdata.Span{
			Attributes: []otlpdata.KeyValue{text(fmt.Sprint("k", i%500), fmt.Sprint(strings.Repeat("x", 200), i))}}})
		if c.chargeLarge() != nil {
			err = nil
		}
	}
	if err != nil {
		t.Error("a large trace takes memory without limit")
	}
	m.Release()
	if account.used != 0 {
		t.Errorf("%d bytes are not released", account.used)
	}
}

// limited is an account with a limit.
type limited struct{ used, limit int64 }

func (l *limited) Grow(n int64) error {
	if l.used+n > l.limit {
		return fmt.Errorf("limit of %d bytes", l.limit)
	}
	l.used += n
	return nil
}

func (l *limited) Shrink(n int64) { l.used -= n }

// TestDecileBounds checks ranges with equal numbers.
func TestDecileBounds(t *testing.T) {
	for _, c := range []struct {
		numbers []float64
		bounds  []float64
		ranks   []int
	}{
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{[]float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 3}, []float64{0}, []int{9}},
		{[]float64{5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, []float64{5}, []int{9}},
		{[]float64{1, 1, 1, 1, 1, 2, 2, 2, 2, 2}, []float64{1, 2}, []int{5, 9}},
	} {
		bounds, ranks := decileBounds(c.numbers)
		if !slices.Equal(bounds, c.bounds) || !slices.Equal(ranks, c.ranks) {
			t.Errorf("%v: bounds %v up to deciles %v", c.numbers, bounds, ranks)
		}
	}
}

// TestDurations checks the durations of the values of a line.
func TestDurations(t *testing.T) {
	c := countSpans(t, 200, func(i int) (bool, []otlpdata.KeyValue) {
		selected := i >= 100
		return selected, []otlpdata.KeyValue{text("v", fmt.Sprint(i >= 90))}
	})
	for i := range c.traces { // 1 µs, and the selected ones 1 ms
		c.traces[i].duration = 1 << 10
		if c.traces[i].selected {
			c.traces[i].duration = 1 << 20
		}
	}
	got := c.durations(c.rankAttributes().lines[0], weights{1, 10})
	yes, no := got.Values[0], got.Values[1]
	if got.First != 40 || yes.Text != "true" || no.Text != "false" || yes.Traces != 200 || no.Traces != 900 || len(yes.Rest) != 41 ||
		yes.Rest[0] != 100 || yes.Selected[40] != 100 || no.Rest[0] != 900 || slices.Max(no.Selected) != 0 {
		t.Errorf("%+v", got)
	}
	if math.Exp2(float64(got.First)/4) != 1<<10 {
		t.Error("the first bucket does not begin at the first duration")
	}
}
