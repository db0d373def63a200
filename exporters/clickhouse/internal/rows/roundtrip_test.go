package rows

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var arrived = time.Unix(1_700_000_000, 0)

func options() Options {
	return Options{Arrived: arrived, Retention: 14 * day, MaxRows: 1000, MaxBytes: 1 << 20}
}

// generator writes random spans, in the usual encoding and in odd ones.
type generator struct{ *rand.Rand }

func (g generator) text() string {
	words := []string{"", "a", "GET /cart/{id}", "Grüße, 世界", "\xff\xfe", "x\x00y", "user-01234", "0.0.0.0", "10.0.255.07", "10.0.255.7",
		"00000000000000ff", "0123456789abcdef0", "1234567890123456789012", "a 999 b 000 c 123\xff", "12", "'; DROP TABLE spans --"}
	if g.IntN(50) == 0 {
		return string(make([]byte, g.IntN(40_000)))
	}
	return words[g.IntN(len(words))]
}

func (g generator) value() otlpdata.Value {
	switch g.IntN(8) {
	case 0:
		return otlpdata.IntValue(int64(g.Uint64()))
	case 1:
		return otlpdata.DoubleValue(math.Float64frombits(g.Uint64()))
	case 2:
		return otlpdata.BoolValue(g.IntN(2) == 0)
	case 3:
		return otlpdata.EncodedValue(otlpdata.ValueBytes, g.text())
	case 4:
		return otlpdata.ParseJSON(`["a",1,"1","a",true,null,["nested"]]`)
	case 5:
		return otlpdata.Value{}
	}
	return otlpdata.StringValue(g.text())
}

func (g generator) attributes() []otlpdata.KeyValue {
	kvs := make([]otlpdata.KeyValue, g.IntN(5))
	for i := range kvs {
		kvs[i] = otlpdata.KeyValue{Key: fmt.Sprint("k", g.IntN(4)), Value: g.value()}
	}
	return kvs
}

func (g generator) number() uint64 { return g.Uint64() >> g.IntN(64) }

func (g generator) span() otlpdata.Span {
	s := otlpdata.Span{Name: g.text(), TraceState: g.text(), Kind: int32(g.IntN(8)), StatusCode: int32(g.IntN(4)), StatusMessage: g.text(),
		Attributes: g.attributes(), Flags: uint32(g.IntN(3)), Start: g.number()}
	if g.IntN(10) > 0 {
		binary.BigEndian.PutUint64(s.TraceID[:], g.Uint64())
		binary.BigEndian.PutUint64(s.SpanID[:], g.Uint64())
	}
	if g.IntN(2) > 0 {
		s.TraceState = ""
		binary.BigEndian.PutUint64(s.ParentID[:], g.Uint64())
	}
	if g.IntN(4) > 0 {
		s.Start = uint64(arrived.UnixNano()) - g.number()%uint64(20*day)
	}
	s.End = s.Start + []uint64{0, 1, g.number(), -g.number()}[g.IntN(4)]
	for range g.IntN(3) {
		s.Events = append(s.Events, otlpdata.Event{Time: g.number(), Name: g.text(), Attributes: g.attributes()})
	}
	for range g.IntN(2) {
		s.Links = append(s.Links, otlpdata.Link{SpanID: s.ParentID, Attributes: g.attributes()})
	}
	return s
}

// encoding returns the bytes of a random span.
func (g generator) encoding() []byte {
	s := g.span()
	raw := otlpdata.AppendSpan(nil, &s)
	switch g.IntN(8) {
	case 0: // unknown field
		return append(raw, 0xfa, 0x3f, 3, 'a', 'b', 'c')
	case 1: // repeated singular field at the end
		return append(raw, 5<<3|2, 1, 'z')
	case 2: // odd order
		return append([]byte{6 << 3, byte(g.IntN(5))}, raw...)
	case 3: // explicit default values
		return append(raw, 10<<3, 0, 4<<3|2, 0)
	case 4: // number longer than necessary
		return append([]byte{6 << 3, 0x83, 0x00}, raw...)
	case 5: // empty parent, as some encoders write it
		s.ParentID, s.TraceState = otlpdata.SpanID{}, ""
		raw = otlpdata.AppendSpan(nil, &s)
		ids := otlpdata.AppendSpan(nil, &otlpdata.Span{TraceID: s.TraceID, SpanID: s.SpanID})
		return append(append(slices.Clone(ids), 4<<3|2, 0), raw[len(ids):]...)
	case 6: // empty ids
		return append([]byte{1<<3 | 2, 0, 2<<3 | 2, 0}, raw...)
	}
	return raw
}

func (g generator) batch(t testing.TB, spans int) *otlpdata.Batch {
	t.Helper()
	var chunk []byte
	for spans > 0 {
		group := make([][]byte, min(spans, 1+g.IntN(5)))
		for i := range group {
			group[i] = g.encoding()
		}
		spans -= len(group)
		resource := otlpdata.Resource{Raw: otlpdata.AppendSpan(nil, &otlpdata.Span{}), SchemaURL: g.text()}
		if g.IntN(4) > 0 {
			resource.Raw = []byte("\x0a\x16\x0a\x0cservice.name\x12\x06\x0a\x04cart\xfa\x3f\x01x")
		}
		scope := otlpdata.Scope{SchemaURL: g.text()}
		if g.IntN(2) > 0 {
			scope.Raw = []byte("\x0a\x03lib\x12\x03v10")
		}
		chunk = otlpdata.AppendResourceSpans(chunk, &resource, &scope, group...)
	}
	b, err := otlpdata.FromOTLP(chunk, otlpdata.Meta{Tenant: "acme"}, otlpdata.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// identity is the content of a span.
func identity(s tracestore.Span) string {
	return fmt.Sprintf("%q %q %q %q %x", s.Resource.Raw, s.Resource.SchemaURL, s.Scope.Raw, s.Scope.SchemaURL, s.Raw)
}

// TestRoundTrip compares the spans of random batches with those that their rows give, byte by byte.
func TestRoundTrip(t *testing.T) {
	stripped, total := 0, 0
	for seed := range uint64(150) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		s, n := checkRoundTrip(t, g.batch(t, 1+g.IntN(60)), seed%2 == 0)
		stripped, total = stripped+s, total+n
	}
	if stripped < total/10 || stripped > total*9/10 {
		t.Errorf("%d of %d spans are stripped, want both forms for a meaningful test", stripped, total)
	}
}

// checkRoundTrip compares the spans of a batch with those that their rows give. It returns the
// number of spans that are cut into parts, and of all.
func checkRoundTrip(t testing.TB, b *otlpdata.Batch, lowCardinality bool) (stripped, total int) {
	t.Helper()
	var want, got []string
	dedup := storequery.NewDedup()
	if err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
		if dedup.First(s) {
			want = append(want, identity(s))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var decoder Decoder
	if err := Encode(b, options(), func(block *Block) error {
		table := transfer(t, block.Payload, lowCardinality)
		for i := range table.Rows() {
			p, err := decoder.Scan(scanner{table, i})
			if err != nil {
				return err
			}
			s, err := decoder.Span(p)
			if err != nil {
				return err
			}
			got = append(got, identity(s))
			if p.Shape[0] != 0 {
				stripped++
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("span %d:\n got %s\nwant %s", i, got[i], want[i])
		}
	}
	return stripped, len(got)
}

// TestSearchColumns compares the rows of the table "spans" with the spans.
func TestSearchColumns(t *testing.T) {
	for seed := range uint64(60) {
		g := generator{rand.New(rand.NewPCG(seed, 2))}
		b := g.batch(t, 1+g.IntN(40))
		var rows []string
		if err := Encode(b, options(), func(block *Block) error {
			table := transfer(t, block.Spans, seed%2 == 0)
			for i := range table.Rows() {
				rows = append(rows, searchRow(func(name string) any { return value(t, table, name, i) }))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		i, dedup := 0, storequery.NewDedup()
		if err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
			if !dedup.First(s) {
				return nil
			}
			if want := wantRow(s); rows[i] != want {
				t.Fatalf("seed %d, row %d:\n got %s\nwant %s", seed, i, rows[i], want)
			}
			i++
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func searchRow(get func(string) any) string {
	var b bytes.Buffer
	for _, name := range []string{"tenant", "service", "start", "name", "kind", "status", "status_message", "duration", "calls",
		"trace_id", "root", "scope_name", "scope_version", "event_names"} {
		fmt.Fprintf(&b, "%q=%q ", name, fmt.Sprint(get(name)))
	}
	for _, p := range Pairs() {
		fmt.Fprintf(&b, "%s=%q:%q ", p, fmt.Sprint(get(p.Keys())), fmt.Sprint(get(p.Values())))
	}
	return b.String()
}

func wantRow(s tracestore.Span) string {
	ns, _ := s.Duration()
	names := []string{}
	for i := range s.Events {
		names = append(names, s.Events[i].Name)
	}
	want := map[string]any{"tenant": "acme", "service": s.Resource.Service, "start": s.Start, "name": s.Operation(), "kind": s.KindName(),
		"status": otlpdata.StatusName(s.StatusCode), "status_message": s.StatusMessage, "duration": ns,
		"calls": s.AdjustedCount(), "trace_id": string(s.TraceID[:]), "root": map[bool]uint8{true: 1}[s.ParentID.IsZero()],
		"scope_name": s.Scope.Name, "scope_version": s.Scope.Version, "event_names": names}
	keys, values := map[Pair][]string{}, map[Pair][]any{}
	var add func(prefix string, kvs []otlpdata.KeyValue)
	add = func(prefix string, kvs []otlpdata.KeyValue) {
		for _, kv := range kvs {
			p, v := PairOther, any(kv.Value.AsString())
			switch kv.Value.Kind() {
			case otlpdata.ValueString:
				if p = PairStr; strings.HasPrefix(prefix, "resource") || strings.HasPrefix(prefix, "scope") {
					p = PairOrigin
				} else if strings.ContainsFunc(kv.Value.Str(), func(r rune) bool { return '0' <= r && r <= '9' }) {
					p = PairText
				}
			case otlpdata.ValueInt:
				p, v = PairInt, kv.Value.Int()
			case otlpdata.ValueDouble:
				p, v = PairFloat, kv.Value.Double()
			}
			keys[p], values[p] = append(keys[p], prefix+kv.Key), append(values[p], v)
			texts := []string{kv.Value.AsString()}
			var added []otlpdata.Value
			for e := range kv.Value.ElementsInJSON() {
				at := ElementPrefix(prefix)
				if slices.Contains(texts, e.AsString()) {
					at = SameTextPrefix(prefix)
				}
				if !slices.Contains(added, e) {
					add(at, []otlpdata.KeyValue{{Key: kv.Key, Value: e}})
				}
				texts, added = append(texts, e.AsString()), append(added, e)
			}
		}
	}
	add(PrefixSpan, s.Attributes)
	add(PrefixResource, s.Resource.Attributes)
	add(PrefixScope, s.Scope.Attributes)
	for i := range s.Events {
		add(PrefixEvent, s.Events[i].Attributes)
	}
	for i := range s.Links {
		add(PrefixLink, s.Links[i].Attributes)
	}
	for _, p := range Pairs() {
		want[p.Keys()], want[p.Values()] = keys[p], values[p]
	}
	return searchRow(func(name string) any { return want[name] })
}
