package storequery

import (
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// WhereTag returns the condition that existing clients mean by a tag of a search. Some keys are no attributes but properties of the span, all
// others are looked for wherever there are attributes. The tags that the native model makes of properties are found by the names it gives
// them.
func WhereTag(key, value string) tracestore.Expr {
	if k, ok := strings.CutPrefix(key, "resource."); ok {
		return textIs(tracestore.ResourceAttribute, k, value)
	}
	anywhere := textIs(tracestore.AnyAttribute, key, value)
	switch key {
	case "error":
		return whereError(value, anywhere)
	case "span.status":
		return textIs(tracestore.Status, "", statusCalled(value))
	case "span.kind":
		return textIs(tracestore.Kind, "", kindCalled(value))
	case "scope.name":
		return textIs(tracestore.ScopeName, "", value)
	case "scope.version":
		return textIs(tracestore.ScopeVersion, "", value)
	case "otel.scope.name":
		return tracestore.Or{anywhere, textIs(tracestore.ScopeName, "", value)}
	case "otel.scope.version":
		return tracestore.Or{anywhere, textIs(tracestore.ScopeVersion, "", value)}
	case "otel.status_code":
		return tracestore.Or{anywhere, textIs(tracestore.Status, "", strings.ToLower(value))}
	case "otel.status_description":
		return tracestore.Or{anywhere, textIs(tracestore.StatusMessage, "", value)}
	case otlpdata.FlagsAttribute: // which no answer shows
		return tracestore.Or{}
	case "event":
		return tracestore.Or{anywhere, textIs(tracestore.EventName, "", value)}
	}
	return anywhere
}

// whereError treats `error` as the question whether the span failed; any other value is looked for as it is.
func whereError(value string, anywhere tracestore.Expr) tracestore.Expr {
	failed := textIs(tracestore.Status, "", "error")
	switch value {
	case "true":
		return failed
	case "false":
		return tracestore.Not{Expr: failed}
	}
	return anywhere
}

// statusCalled returns the name in conditions of a status code as clients write it.
func statusCalled(value string) string {
	switch v := strings.ToLower(value); v {
	case "ok", "error":
		return v
	}
	return "unset"
}

// kindCalled returns the name in conditions of a kind as clients write it: one that is not specified is `unspecified` in some of them.
func kindCalled(value string) string {
	if v := strings.ToLower(value); v != "unspecified" {
		return v
	}
	return ""
}

func textIs(p tracestore.Place, key, value string) tracestore.Cond {
	return tracestore.Cond{Field: tracestore.Field{Place: p, Key: key}, Op: tracestore.Eq, Value: tracestore.Text(value)}
}
