package query

import (
	"maps"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// where returns the condition that one span of a trace must meet.
func (s *search) where() tracestore.Expr {
	all := tracestore.And{equals(tracestore.Service, s.service)}
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
		all = append(all, whereTag(key, s.tags[key]))
	}
	return all
}

func duration(op tracestore.Op, ns int64) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: tracestore.Duration}, Op: op, Value: tracestore.Number(float64(ns))}
}

// whereTag returns the condition for a tag. Some keys are no attributes but properties of the span, all others are looked for wherever
// there are attributes. The tags that the trace JSON derives from properties are found by the names it gives them.
func whereTag(key, value string) tracestore.Expr {
	if k, ok := strings.CutPrefix(key, "resource."); ok {
		return attribute(tracestore.ResourceAttribute, k, value)
	}
	anywhere := attribute(tracestore.AnyAttribute, key, value)
	switch key {
	case "error":
		return whereError(value, anywhere)
	case "span.status":
		return equals(tracestore.Status, statusName(value))
	case "span.kind":
		return equals(tracestore.Kind, kindName(value))
	case "scope.name":
		return equals(tracestore.ScopeName, value)
	case "scope.version":
		return equals(tracestore.ScopeVersion, value)
	case "otel.scope.name":
		return tracestore.Or{anywhere, equals(tracestore.ScopeName, value)}
	case "otel.scope.version":
		return tracestore.Or{anywhere, equals(tracestore.ScopeVersion, value)}
	case "otel.status_code":
		return tracestore.Or{anywhere, equals(tracestore.Status, strings.ToLower(value))}
	case "otel.status_description":
		return tracestore.Or{anywhere, equals(tracestore.StatusMessage, value)}
	case otlpdata.FlagsAttribute: // which no answer shows
		return tracestore.Or{}
	case "event":
		return tracestore.Or{anywhere, equals(tracestore.EventName, value)}
	}
	return anywhere
}

// whereError treats `error` as the question whether the span failed; any other value is looked for as it is.
func whereError(value string, anywhere tracestore.Expr) tracestore.Expr {
	failed := equals(tracestore.Status, statusError)
	switch value {
	case "true":
		return failed
	case "false":
		return tracestore.Not{Expr: failed}
	}
	return anywhere
}

// The names of status codes in conditions.
const (
	statusOK    = "ok"
	statusError = "error"
	statusUnset = "unset"
)

func statusName(value string) string {
	switch v := strings.ToLower(value); v {
	case statusOK, statusError:
		return v
	}
	return statusUnset
}

// kindName returns the kind that a client means, which for a span without one is `unspecified` in some versions of the API.
func kindName(value string) string {
	v := strings.ToLower(value)
	if v == "unspecified" {
		return ""
	}
	return v
}

func equals(p tracestore.Place, value string) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: p}, Op: tracestore.Eq, Value: tracestore.Text(value)}
}

func attribute(p tracestore.Place, key, value string) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: p, Key: key}, Op: tracestore.Eq, Value: tracestore.Text(value)}
}
