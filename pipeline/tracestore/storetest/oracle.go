package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// oracle holds all spans that were sent, and evaluates queries by examining all of them.
type oracle struct{ tenants map[string]*sentSpans }

// sentSpans holds the spans of one tenant without duplicates.
type sentSpans struct {
	dedup    *storequery.Dedup
	spans    []tracestore.Span
	traces   map[otlpdata.TraceID][]tracestore.Span
	requests map[string]int // number of requests with a span, by its identity
}

func newOracle() *oracle { return &oracle{tenants: make(map[string]*sentSpans)} }

func (o *oracle) tenant(name string) *sentSpans {
	t := o.tenants[name]
	if t == nil {
		t = &sentSpans{dedup: storequery.NewDedup(), traces: make(map[otlpdata.TraceID][]tracestore.Span), requests: make(map[string]int)}
		o.tenants[name] = t
	}
	return t
}

// add adds the spans of a batch. The walk cannot fail for a batch from FromOTLP.
func (o *oracle) add(b *otlpdata.Batch) {
	t := o.tenant(b.Meta().Tenant)
	own := storequery.NewDedup()
	_ = tracestore.WalkSpans(b, func(s tracestore.Span) error {
		if own.First(s) {
			t.requests[identity(s)]++
		}
		if t.dedup.First(s) {
			s = clone(s)
			t.spans = append(t.spans, s)
			t.traces[s.TraceID] = append(t.traces[s.TraceID], s)
		}
		return nil
	})
}

// clone copies a span that is valid only during a walk. Strings share memory with the batch and
// need no copy.
func clone(s tracestore.Span) tracestore.Span {
	r, sc, sp := *s.Resource, *s.Scope, *s.Span
	r.Attributes = slices.Clone(r.Attributes)
	sc.Attributes = slices.Clone(sc.Attributes)
	sp.Attributes = slices.Clone(sp.Attributes)
	sp.Events = slices.Clone(sp.Events)
	for i := range sp.Events {
		sp.Events[i].Attributes = slices.Clone(sp.Events[i].Attributes)
	}
	sp.Links = slices.Clone(sp.Links)
	for i := range sp.Links {
		sp.Links[i].Attributes = slices.Clone(sp.Links[i].Attributes)
	}
	return tracestore.Span{Resource: &r, Scope: &sc, Span: &sp}
}

// trace returns the spans of a trace in canonical form.
func (o *oracle) trace(tenant string, id otlpdata.TraceID) []string {
	var out []string
	for _, s := range o.tenant(tenant).traces[id] {
		out = append(out, canonical(s))
	}
	return out
}

func (o *oracle) summary(tb testing.TB, tenant string, id otlpdata.TraceID) tracestore.Summary {
	tb.Helper()
	b, err := encode(tenant, o.tenant(tenant).traces[id])
	if err != nil {
		tb.Fatalf("encoding trace %s: %v", id, err)
	}
	sum, err := storequery.Summarize(id, b)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return sum
}

func encode(tenant string, spans []tracestore.Span) (*otlpdata.Batch, error) {
	var enc []byte
	for _, s := range spans {
		enc = otlpdata.AppendResourceSpans(enc, s.Resource, s.Scope, s.Raw)
	}
	return otlpdata.FromOTLP(enc, otlpdata.Meta{Tenant: tenant}, otlpdata.Limits{})
}

// find evaluates a query by its definition.
func (o *oracle) find(q tracestore.Query) []tracestore.Result {
	from, to, ok := q.Window()
	if !ok {
		return nil
	}
	latest := make(map[otlpdata.TraceID]uint64)
	for _, s := range o.tenant(q.Tenant).spans {
		if s.Start < from || s.Start > to || !tracestore.Match(q.Where, s) {
			continue
		}
		latest[s.TraceID] = max(latest[s.TraceID], s.Start)
	}
	var out []tracestore.Result
	for id, start := range latest {
		r := tracestore.Result{ID: id, Start: start}
		if !q.After.Set || newestFirst(tracestore.Result{ID: q.After.ID, Start: q.After.Start}, r) < 0 {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, newestFirst)
	if q.Limit > 0 && len(out) > q.Limit {
		out = out[:q.Limit]
	}
	return out
}

func newestFirst(a, b tracestore.Result) int {
	return cmp.Or(cmp.Compare(b.Start, a.Start), slices.Compare(b.ID[:], a.ID[:]))
}

func key(r tracestore.Result) string { return fmt.Sprintf("%x@%d", r.ID[:], r.Start) }

// services returns the services of a tenant, sorted.
func (o *oracle) services(tenant string) []string {
	var out []string
	for _, s := range o.tenant(tenant).spans {
		out = append(out, s.Resource.Service)
	}
	return sortedSet(out, cmp.Compare[string])
}

// operations returns the operations of a service, sorted.
func (o *oracle) operations(tenant, service, kind string) []tracestore.Operation {
	var out []tracestore.Operation
	for _, s := range o.tenant(tenant).spans {
		op := tracestore.Operation{Name: s.Operation(), Kind: s.KindName()}
		if s.Resource.Service == service && (kind == "" || kind == op.Kind) {
			out = append(out, op)
		}
	}
	return sortedSet(out, func(a, b tracestore.Operation) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
}

// attributes returns all attributes of a tenant's spans.
func (o *oracle) attributes(tenant string) []otlpdata.KeyValue {
	var out []otlpdata.KeyValue
	for _, s := range o.tenant(tenant).spans {
		out = append(append(append(out, s.Attributes...), s.Resource.Attributes...), s.Scope.Attributes...)
		for _, e := range s.Events {
			out = append(out, e.Attributes...)
		}
		for _, l := range s.Links {
			out = append(out, l.Attributes...)
		}
	}
	return out
}

func (o *oracle) attributeKeys(tenant, prefix string) []string {
	var out []string
	for _, kv := range o.attributes(tenant) {
		if strings.HasPrefix(kv.Key, prefix) && kv.Key != otlpdata.FlagsAttribute {
			out = append(out, kv.Key)
		}
	}
	return sortedSet(out, cmp.Compare[string])
}

func (o *oracle) attributeValues(tenant, key, prefix string) []string {
	if key == otlpdata.FlagsAttribute {
		return nil
	}
	var out []string
	for _, kv := range o.attributes(tenant) {
		if kv.Key != key {
			continue
		}
		for v := range storequery.FacetValues(kv.Value) {
			if text := v.AsString(); strings.HasPrefix(text, prefix) {
				out = append(out, text)
			}
		}
	}
	return sortedSet(out, cmp.Compare[string])
}

func sortedSet[T comparable](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}
