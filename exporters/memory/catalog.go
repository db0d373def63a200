package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Services implements tracestore.Catalog.
func (e *exporter) Services(_ context.Context, tenant string, q tracestore.NameQuery) (names []string, more bool, _ error) {
	names = e.services(tenant, q.Prefix)
	slices.Sort(names)
	names, more = storequery.SelectServices(names, q)
	return names, more, nil
}

// services returns the services with a prefix, in any order.
func (e *exporter) services(tenant, prefix string) []string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	out := []string{}
	if t := e.tenants[tenant]; t != nil {
		for name := range t.services {
			if strings.HasPrefix(name, prefix) {
				out = append(out, name)
			}
		}
	}
	return out
}

// Operations implements tracestore.Catalog.
func (e *exporter) Operations(
	_ context.Context, tenant, service, kind string, q tracestore.NameQuery,
) (ops []tracestore.Operation, more bool, _ error) {
	out := e.operations(tenant, service)
	if kind != "" {
		out = slices.DeleteFunc(out, func(op tracestore.Operation) bool { return op.Kind != kind })
	}
	slices.SortFunc(out, func(a, b tracestore.Operation) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	ops, more = storequery.SelectOperations(out, q)
	return ops, more, nil
}

func (e *exporter) operations(tenant, service string) []tracestore.Operation {
	e.mu.RLock()
	defer e.mu.RUnlock()
	out := []tracestore.Operation{}
	t := e.tenants[tenant]
	if t == nil || t.services[service] == nil {
		return out
	}
	for op := range t.services[service].operations {
		out = append(out, op)
	}
	return out
}

// defaultLimit is the maximum length of a list of attributes if the caller sets none.
const defaultLimit = 1000

// AttributeKeys implements tracestore.Catalog.
func (e *exporter) AttributeKeys(_ context.Context, tenant, prefix string, limit int) ([]string, error) {
	return firstOf(e.keys(tenant, prefix), limit), nil
}

func (e *exporter) keys(tenant, prefix string) []string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	var out []string
	if t := e.tenants[tenant]; t != nil {
		for key := range t.attributes {
			if strings.HasPrefix(key, prefix) && key != otlpdata.FlagsAttribute {
				out = append(out, key)
			}
		}
	}
	return out
}

// maxValues is the maximum number of distinct values of a key that are examined for a prefix.
const maxValues = 100_000

// AttributeValues implements tracestore.Catalog. If a key has more than maxValues values,
// it examines only a part of them.
func (e *exporter) AttributeValues(ctx context.Context, tenant, key, prefix string, limit int) ([]string, error) {
	rows, origins := e.holders(tenant, key)
	values := make(map[string]struct{})
	addValue := func(v otlpdata.Value) {
		if text := v.AsString(); strings.HasPrefix(text, prefix) {
			values[strings.Clone(text)] = struct{}{}
		}
	}
	add := func(kvs []otlpdata.KeyValue) {
		for i := range kvs {
			if kvs[i].Key != key {
				continue
			}
			addValue(kvs[i].Value)
			for e := range kvs[i].Value.ElementsInJSON() {
				addValue(e)
			}
		}
	}
	for _, o := range origins {
		add(o.resource.Attributes)
		add(o.scope.Attributes)
	}
	var reader otlpdata.SpanReader
	for _, r := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := reader.Read(r.raw)
		if err != nil {
			return nil, fmt.Errorf("parsing stored span: %w", err)
		}
		add(s.Attributes)
		for i := range s.Events {
			add(s.Events[i].Attributes)
		}
		for i := range s.Links {
			add(s.Links[i].Attributes)
		}
	}
	out := make([]string, 0, len(values))
	for v := range values {
		out = append(out, v)
	}
	return firstOf(out, limit), nil
}

// holders returns a row or an origin for each value of a key, because the index holds only hashes
// of values.
func (e *exporter) holders(tenant, key string) (rows []*row, origins []*origin) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	t := e.tenants[tenant]
	if t == nil || t.attributes[key] == nil || key == otlpdata.FlagsAttribute {
		return nil, nil
	}
	a := t.attributes[key]
	for _, p := range a.rows {
		if p.many != nil {
			p.one = p.many.newest()
		}
		if rows = append(rows, p.one); len(rows) == maxValues {
			break
		}
	}
	for _, list := range a.origins {
		if origins = append(origins, list[0]); len(origins) == maxValues {
			break
		}
	}
	return rows, origins
}

// firstOf sorts a list and returns its first elements.
func firstOf(list []string, limit int) []string {
	if limit <= 0 {
		limit = defaultLimit
	}
	slices.Sort(list)
	return list[:min(limit, len(list))]
}
