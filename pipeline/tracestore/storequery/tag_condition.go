package storequery

import (
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TagCondition returns the condition that a tag has in searches of existing clients. Some keys are
// properties of the span. All others are attributes of any scope. The names that Jaeger's model
// gives to properties, such as otel.status_code, match the property as well as an attribute.
func TagCondition(key, value string) tracestore.Expr {
	if k, ok := strings.CutPrefix(key, "resource."); ok {
		return textIs(tracestore.ResourceAttribute, k, value)
	}
	anywhere := textIs(tracestore.AnyAttribute, key, value)
	switch key {
	case "error":
		return errorCondition(value, anywhere)
	case "span.status":
		return textIs(tracestore.Status, "", statusName(value))
	case "span.kind":
		return textIs(tracestore.Kind, "", kindName(value))
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
	case otlpdata.FlagsAttribute: // internal
		return tracestore.Or{}
	case "event":
		return tracestore.Or{anywhere, textIs(tracestore.EventName, "", value)}
	}
	return anywhere
}

// errorCondition treats `true` and `false` as the question whether the span failed. Any other value
// is the value of an attribute.
func errorCondition(value string, anywhere tracestore.Expr) tracestore.Expr {
	failed := textIs(tracestore.Status, "", "error")
	switch value {
	case "true":
		return failed
	case "false":
		return tracestore.Not{Expr: failed}
	}
	return anywhere
}

// statusName converts a status code as clients write it to its name in conditions.
func statusName(value string) string {
	switch v := strings.ToLower(value); v {
	case "ok", "error":
		return v
	}
	return "unset"
}

// kindName converts a span kind as clients write it to its name in conditions. Some clients write
// `unspecified`.
func kindName(value string) string {
	if v := strings.ToLower(value); v != "unspecified" {
		return v
	}
	return ""
}

func textIs(p tracestore.Place, key, value string) tracestore.Cond {
	return tracestore.Cond{Field: tracestore.Field{Place: p, Key: key}, Op: tracestore.Eq, Value: tracestore.Text(value)}
}
