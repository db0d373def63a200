package storequery

import (
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TagCondition returns the condition for a tag in searches of existing clients. Some keys are
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
	case otlpdata.FlagsAttribute: // internal
		return tracestore.Or{}
	case "":
		return anywhere
	}
	for _, p := range tracestore.Places() {
		switch key {
		case p.Tag:
			return textIs(p.Place, "", tagValue(p.Place, value))
		case p.OTelTag:
			if p.Type == tracestore.WordField {
				value = strings.ToLower(value)
			}
			return tracestore.Or{anywhere, textIs(p.Place, "", value)}
		}
	}
	return anywhere
}

// errorCondition treats the values `true` and `false` as conditions on whether the span failed. Any
// other value is compared with an attribute.
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

// tagValue converts the value of a property from the form that clients use to the form in
// conditions.
func tagValue(p tracestore.Place, value string) string {
	info := p.Info()
	if info.Type != tracestore.WordField {
		return value
	}
	value = strings.ToLower(value)
	switch {
	case p == tracestore.Status && value != "ok" && value != "error":
		return "unset"
	case value == info.Empty:
		return ""
	}
	return value
}

func textIs(p tracestore.Place, key, value string) tracestore.Cond {
	return tracestore.Cond{Field: tracestore.Field{Place: p, Key: key}, Op: tracestore.Eq, Value: tracestore.Text(value)}
}
