package query

import (
	"maps"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// serviceKey is the resource attribute that names the service.
const serviceKey = "service.name"

// where returns the condition that one span of a trace must meet.
func (s *search) where() tracestore.Expr {
	var all tracestore.And
	if s.service != "" {
		all = append(all, equals(tracestore.Service, s.service))
	}
	if s.operation != "" {
		all = append(all, equals(tracestore.Name, s.operation))
	}
	if s.minDuration != 0 {
		all = append(all, duration(tracestore.Ge, s.minDuration.Nanoseconds()))
	}
	if s.maxDuration != 0 {
		all = append(all, duration(tracestore.Le, s.maxDuration.Nanoseconds()))
	}
	for _, key := range slices.Sorted(maps.Keys(s.tags)) {
		all = append(all, storequery.WhereTag(key, s.tags[key]))
	}
	return all
}

func duration(op tracestore.Op, ns int64) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: tracestore.Duration}, Op: op, Value: tracestore.Number(float64(ns))}
}

func equals(p tracestore.Place, value string) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: p}, Op: tracestore.Eq, Value: tracestore.Text(value)}
}
