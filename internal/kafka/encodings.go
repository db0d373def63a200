package kafka

import (
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// Encodings of records, named as in the OpenTelemetry Collector.
const (
	OTLPProto   = "otlp_proto"   // one trace request
	OTLPJSON    = "otlp_json"    // one trace request
	JaegerProto = "jaeger_proto" // one span with its process
	JaegerJSON  = "jaeger_json"  // one span with its process
	ZipkinProto = "zipkin_proto" // a list of spans
	ZipkinJSON  = "zipkin_json"  // a list of spans
)

// Encodings returns the names of all encodings.
func Encodings() []string {
	return []string{OTLPProto, OTLPJSON, JaegerProto, JaegerJSON, ZipkinProto, ZipkinJSON}
}

// DefaultTopic is the topic of spans in both directions, the same as in the OpenTelemetry
// Collector.
const DefaultTopic = "otlp_spans"

// DefaultTenantHeader is the record header with the tenant of the spans. Exporters send no header
// for the default tenant.
const DefaultTenantHeader = "x-tenant"

// ValidateEncoding reports an unknown encoding.
func ValidateEncoding(name string) error {
	if !slices.Contains(Encodings(), name) {
		return pipeline.BadKey("encoding", "%q is not one of %s", name, strings.Join(Encodings(), ", "))
	}
	return nil
}

// maxTopic is the maximum length of the name of a topic.
const maxTopic = 249

// ValidateTopic reports a name that brokers refuse.
func ValidateTopic(key, name string) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	if name == "" || name == "." || name == ".." || len(name) > maxTopic || strings.Trim(name, letters) != "" {
		return pipeline.BadKey(key, "%q is not a topic; use at most %d letters, digits, dots, hyphens and underscores", name, maxTopic)
	}
	return nil
}
