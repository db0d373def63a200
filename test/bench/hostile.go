package bench

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Hostile is a kind of unusual data that is expensive for a server, such as a faulty program or an
// attacker sends. In all other respects the spans are like the data set's.
type Hostile int

// The hostile kinds of data.
const (
	// UniqueNames gives every span a unique name.
	UniqueNames Hostile = iota
	// SomeKeys adds three attributes to every span. Their keys are selected at random from 1024.
	SomeKeys
	// AllKeys gives every attribute of spans and events a unique key.
	AllKeys
	// LargeValues adds an attribute with a string of 1 MB to every span.
	LargeValues
	// WrongClocks moves every tenth span in time, by up to a year in either direction.
	WrongClocks
	// OneTrace puts all spans into one trace, with one root.
	OneTrace
	// UniqueServices gives every span its own resource with a unique service.name. A request holds
	// many resources.
	UniqueServices
	// UniqueResources gives the resource of every request a unique service.instance.id.
	UniqueResources
)

// HostileKinds returns all kinds.
func HostileKinds() []Hostile {
	return []Hostile{UniqueNames, SomeKeys, AllKeys, LargeValues, WrongClocks, OneTrace, UniqueServices, UniqueResources}
}

// String returns the name of the kind in benchmarks.
func (h Hostile) String() string {
	return [...]string{"unique-names", "some-keys", "all-keys", "large-values", "wrong-clocks", "one-trace", "unique-services",
		"unique-resources"}[h]
}

// largeValue is the size of the values of LargeValues in bytes.
const largeValue = 1_000_000

// Hostile iterates over the requests of [Dataset.Requests], changed as kind says. The same
// arguments give the same requests. With UniqueServices, Request.Resource is the resource of the
// first span.
func (d *Dataset) Hostile(kind Hostile, spans, perRequest int) iter.Seq[Request] {
	switch kind {
	case UniqueServices:
		return joined(d.requests(spans, 1, edits{resource: d.renamed("service.name")}), perRequest)
	case UniqueResources:
		return d.requests(spans, perRequest, edits{resource: d.renamed("service.instance.id")})
	case OneTrace:
		return d.requests(spans, perRequest, edits{span: d.oneTrace()})
	}
	return d.requests(spans, perRequest, edits{span: func(n int, s *Span) {
		r := rand.New(rand.NewPCG(d.seed, uint64(n)))
		switch kind {
		case UniqueNames:
			s.Name = fmt.Sprintf("%s %08x", s.Name, n)
		case SomeKeys:
			s.Attributes = append(s.Attributes, someKeys(r)...)
		case AllKeys:
			rename(r, s.Attributes)
			for _, e := range s.Events {
				rename(r, e.Attributes)
			}
		case LargeValues:
			s.Attributes = append(s.Attributes, text("dump", largeText(r)))
		case WrongClocks:
			if n%10 == 0 {
				shift(s, uint64(r.Int64N(2*int64(year))-int64(year)))
			}
		}
	}})
}

const year = 365 * 24 * time.Hour

// renamed returns an edit that makes the value of one attribute of the resource unique.
func (d *Dataset) renamed(key string) func(int, []otlpdata.KeyValue) []otlpdata.KeyValue {
	return func(n int, of []otlpdata.KeyValue) []otlpdata.KeyValue {
		of = slices.Clone(of)
		for i := range of {
			if of[i].Key == key {
				of[i] = text(key, fmt.Sprintf("%s-%08x", of[i].Value.Str(), n))
			}
		}
		return of
	}
}

// oneTrace returns an edit that puts spans into the first trace, below its root.
func (d *Dataset) oneTrace() func(int, *Span) {
	root := d.Trace(0)[0]
	return func(_ int, s *Span) {
		s.TraceID = root.TraceID
		if s.ParentID.IsZero() && s.SpanID != root.SpanID {
			s.ParentID = root.SpanID
		}
		for i := range s.Links {
			s.Links[i].TraceID = root.TraceID
		}
	}
}

func someKeys(r *rand.Rand) []otlpdata.KeyValue {
	const keys, each = 1024, 3
	var out []otlpdata.KeyValue
	// The keys are distinct, because two steps are shorter than the number of keys.
	for n := r.IntN(keys); len(out) < each; n += 1 + r.IntN(keys/each) {
		out = append(out, text(fmt.Sprintf("custom.key.%d", n%keys), fmt.Sprint(r.IntN(1000))))
	}
	return out
}

func rename(r *rand.Rand, kvs []otlpdata.KeyValue) {
	for i := range kvs {
		kvs[i].Key = fmt.Sprintf("%s.%016x", kvs[i].Key, r.Uint64())
	}
}

// largeText returns a string like a dump of a program's state: words repeat, and numbers do not.
func largeText(r *rand.Rand) string {
	var b strings.Builder
	b.Grow(largeValue + 128)
	for b.Len() < largeValue {
		fmt.Fprintf(&b, "worker %d handles order %016x of shop.checkout, state=waiting, since=%d ms\n",
			r.IntN(64), r.Uint64(), r.IntN(100_000))
	}
	return b.String()[:largeValue]
}

func shift(s *Span, by uint64) {
	s.Start, s.End = s.Start+by, s.End+by
	for i := range s.Events {
		s.Events[i].Time += by
	}
}

// joined concatenates requests until they have perRequest spans. A concatenation of requests is a
// valid request, because a request consists of one repeated field.
func joined(parts iter.Seq[Request], perRequest int) iter.Seq[Request] {
	return func(yield func(Request) bool) {
		var all Request
		for p := range parts {
			if all.Spans == 0 {
				all.Resource = p.Resource
			}
			all.Spans, all.Body = all.Spans+p.Spans, append(all.Body, p.Body...)
			if all.Spans < perRequest {
				continue
			}
			if !yield(all) {
				return
			}
			all = Request{}
		}
		if all.Spans > 0 {
			yield(all)
		}
	}
}
