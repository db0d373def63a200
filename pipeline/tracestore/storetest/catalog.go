package storetest

import (
	"errors"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// checkCatalogOf compares the services and operations of a tenant with those sent.
func (s *suite) checkCatalogOf(tenant string) {
	s.Helper()
	services := s.checkServices(tenant, tracestore.NameQuery{})
	for _, service := range append(services, "unknown") {
		for _, kind := range []string{"", "client", "server", "producer", "consumer", "internal", "unknown"} {
			s.checkOperations(tenant, service, kind, tracestore.NameQuery{})
		}
	}
}

// checkServices compares the services that a query selects with those sent, and returns them.
func (s *suite) checkServices(tenant string, q tracestore.NameQuery) []string {
	s.Helper()
	got, more, err := s.store.Services(s.ctx, tenant, q)
	if err != nil {
		s.Fatalf("Services(%+v): %v", q, err)
	}
	want, others := storequery.SelectServices(s.sent.services(tenant), q)
	if !slices.Equal(got, want) || more != others {
		s.Errorf("tenant %q: services for %+v: %q, others %t; want %q, others %t", tenant, q, got, more, want, others)
	}
	return slices.Clip(got)
}

// checkOperations compares the operations that a query selects with those sent.
func (s *suite) checkOperations(tenant, service, kind string, q tracestore.NameQuery) {
	s.Helper()
	got, more, err := s.store.Operations(s.ctx, tenant, service, kind, q)
	if err != nil {
		s.Fatalf("Operations(%q, %q, %+v): %v", service, kind, q, err)
	}
	want, others := storequery.SelectOperations(s.sent.operations(tenant, service, kind), q)
	if !slices.Equal(got, want) || more != others {
		s.Errorf("tenant %q: operations of %q of kind %q for %+v: %v, others %t; want %v, others %t",
			tenant, service, kind, q, got, more, want, others)
	}
}

func checkCatalog(s *suite) {
	s.checkCatalogOf("")
	kinds := []ptrace.SpanKind{0, ptrace.SpanKindClient, ptrace.SpanKindServer, ptrace.SpanKindProducer,
		ptrace.SpanKindConsumer, ptrace.SpanKindInternal, 42}
	for i, service := range []string{"zoo", "Cart", "cart", "cart"} {
		r := newRequest(service)
		for k, kind := range kinds {
			r.span(uint64(i), uint64(k), "op", base).SetKind(kind)
			r.span(uint64(i), uint64(100+k), "op "+kind.String(), base).SetKind(kind)
		}
		r.span(uint64(i), 200, "", base)
		r.span(uint64(i), 201, "\xff", base)
		s.send("", r.traces)
	}
	empty := newRequest("no spans")
	s.send("", empty.traces)
	s.checkCatalogOf("")
	for _, prefix := range []string{"", "c", "cart", "carts", "op", "op C", "zoo\x00", "\xff"} {
		for limit := range 6 {
			q := tracestore.NameQuery{Prefix: prefix, Limit: limit}
			s.checkServices("", q)
			s.checkServices("unknown", q)
			s.checkOperations("", "cart", "", q)
			s.checkOperations("", "cart", "client", q)
		}
	}
}

func checkAttributeCatalog(s *suite) {
	if !s.listsAttributes() {
		s.Skip("store does not list attributes")
	}
	s.checkAttributesOf("", "k", "")
	for i := range uint64(3) {
		td := ptrace.NewTraces()
		fullSpan(td, i, i)
		s.send("", td)
		r := newRequest("attributes")
		for j := range uint64(20) {
			sp := r.span(i, 100+j, "op", base+j)
			sp.Attributes().PutStr("same", "value")
			sp.Attributes().PutInt("number", int64(j))
			sp.Attributes().PutStr("text", strings.Repeat("x", int(j)))
		}
		s.send("", r.traces)
	}
	for _, prefix := range []string{"", "d", "double", "double.nan", "unknown", "service", "@"} {
		s.checkAttributesOf(prefix, "number", "")
	}
	for _, key := range append(s.sent.attributeKeys("", ""), "unknown", otlpdata.FlagsAttribute) {
		for _, prefix := range []string{"", "1", "te", "xxx", "no such value"} {
			s.checkAttributesOf("", key, prefix)
		}
	}
	other := newRequest("attributes of another tenant")
	other.span(1, 1, "op", base).Attributes().PutStr("same", "other value")
	s.send("other", other.traces)
	s.checkAttributesOf("", "same", "")
}

func (s *suite) listsAttributes() bool {
	_, err := s.store.AttributeKeys(s.ctx, "", "", 1)
	return !errors.Is(err, tracestore.ErrUnsupported)
}

// checkAttributesOf compares attribute keys with a prefix, and values of a key with a prefix, for
// several limits.
func (s *suite) checkAttributesOf(keyPrefix, key, valuePrefix string) {
	s.Helper()
	for _, limit := range []int{0, 1, 3, 100} {
		keys, err := s.store.AttributeKeys(s.ctx, "", keyPrefix, limit)
		if err != nil {
			s.Fatalf("AttributeKeys: %v", err)
		}
		if msg := diffList(keys, s.sent.attributeKeys("", keyPrefix), limit); msg != "" {
			s.Errorf("attribute keys with prefix %q, limit %d: %s", keyPrefix, limit, msg)
		}
		values, err := s.store.AttributeValues(s.ctx, "", key, valuePrefix, limit)
		if err != nil {
			s.Fatalf("AttributeValues: %v", err)
		}
		if msg := diffList(values, s.sent.attributeValues("", key, valuePrefix), limit); msg != "" {
			s.Errorf("values of %q with prefix %q, limit %d: %s", key, valuePrefix, limit, msg)
		}
	}
}

// diffList describes what is wrong with a list. It must be a sorted subset of all with as many
// elements as the limit permits.
func diffList(got, all []string, limit int) string {
	if limit == 0 {
		limit = 1000
	}
	switch {
	case len(got) != min(limit, len(all)):
		return "wrong length: " + strings.Join(got, ", ") + "; all elements: " + strings.Join(all, ", ")
	case !slices.IsSorted(got):
		return "not sorted: " + strings.Join(got, ", ")
	case len(slices.Compact(slices.Clone(got))) != len(got):
		return "duplicates: " + strings.Join(got, ", ")
	}
	for _, g := range got {
		if !slices.Contains(all, g) {
			return "unexpected element " + g
		}
	}
	return ""
}
