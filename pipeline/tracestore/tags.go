package tracestore

import (
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// WhereTag returns the condition that existing clients mean by a tag of a search. Some keys are no attributes but properties of the span, all
// others are looked for wherever there are attributes. The tags that the native model makes of properties are found by the names it gives
// them.
func WhereTag(key, value string) Expr {
	if k, ok := strings.CutPrefix(key, "resource."); ok {
		return textIs(ResourceAttribute, k, value)
	}
	anywhere := textIs(AnyAttribute, key, value)
	switch key {
	case "error":
		return whereError(value, anywhere)
	case "span.status":
		return textIs(Status, "", statusCalled(value))
	case "span.kind":
		return textIs(Kind, "", kindCalled(value))
	case "scope.name":
		return textIs(ScopeName, "", value)
	case "scope.version":
		return textIs(ScopeVersion, "", value)
	case "otel.scope.name":
		return Or{anywhere, textIs(ScopeName, "", value)}
	case "otel.scope.version":
		return Or{anywhere, textIs(ScopeVersion, "", value)}
	case "otel.status_code":
		return Or{anywhere, textIs(Status, "", strings.ToLower(value))}
	case "otel.status_description":
		return Or{anywhere, textIs(StatusMessage, "", value)}
	case otlpdata.FlagsAttribute: // which no answer shows
		return Or{}
	case "event":
		return Or{anywhere, textIs(EventName, "", value)}
	}
	return anywhere
}

// whereError treats `error` as the question whether the span failed; any other value is looked for as it is.
func whereError(value string, anywhere Expr) Expr {
	failed := textIs(Status, "", "error")
	switch value {
	case "true":
		return failed
	case "false":
		return Not{Expr: failed}
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

func textIs(p Place, key, value string) Cond {
	return Cond{Field: Field{Place: p, Key: key}, Op: Eq, Value: Text(value)}
}
