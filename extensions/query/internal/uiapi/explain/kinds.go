package explain

import (
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// attributeKind says whether a difference in an attribute may be a cause or is a consequence.
type attributeKind uint8

const (
	// input is known before a request is processed, or does not depend on how it ends: versions,
	// flags, places, tenants, attributes of the request. It may be the cause of a difference.
	input attributeKind = iota
	// outcome says how a call ended: status, error, retries, durations. It is a consequence.
	outcome
)

func (k attributeKind) String() string { return [...]string{"input", "outcome"}[k] }

// inputPrefixes are prefixes of keys that are inputs although they have a word of outcomeWords.
var inputPrefixes = []string{"feature_flag.", "deployment.", "messaging.message."}

// outcomePrefixes are prefixes of keys that are outcomes.
var outcomePrefixes = []string{
	"error", "exception", "otel.status", "http.response", "http.status", "db.response", "rpc.response", "grpc.status",
}

// outcomeWords are words of keys that are outcomes.
var outcomeWords = []string{
	"status", "error", "errors", "exception", "fail", "failed", "failure", "failures", "result", "outcome", "response",
	"retry", "retries", "retried", "try", "tries", "attempt", "attempts", "resend", "resends",
	"duration", "latency", "elapsed", "ms", "millis", "seconds", "nanos", "ns",
}

// A key is an outcome if at least outcomeShare of the spans with it failed.
const outcomeShare = 0.95

// kindOf returns the kind of a key. Attributes of resources are inputs; others are classified by
// name, according to OpenTelemetry's semantic conventions. If the name is not conclusive, the data
// decides: a key that only failed spans have, on calls that also succeed, is an outcome.
//
// There is no kind for attributes that only name the operation. Traces are compared if they make
// the same call (see base), and for the same call such an attribute does not differ; see also
// namesCall.
func (c *counter) kindOf(k *key) attributeKind {
	if k.place == tracestore.ResourceAttribute {
		return input
	}
	name := strings.ToLower(k.key)
	begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	if slices.ContainsFunc(inputPrefixes, begins) {
		return input
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	isOutcome := func(word string) bool { return slices.Contains(outcomeWords, word) }
	if slices.ContainsFunc(outcomePrefixes, begins) || slices.ContainsFunc(words, isOutcome) {
		return outcome
	}
	all, failed := c.spansOf(k)
	if succeeded := all - failed; succeeded >= minTraces && float64(k.failed) >= outcomeShare*float64(k.spans) {
		return outcome
	}
	return input
}

// namesCall reports whether all spans of each call have the same value of a key, which then only
// names the call.
func (c *counter) namesCall(k *key) bool {
	n := 0
	for _, v := range k.values {
		n += len(v.calls)
	}
	all, _ := c.spansOf(k)
	return k.place != tracestore.ResourceAttribute && n <= len(k.calls) && k.spans >= all
}

// spansOf returns the numbers of all spans and of failed spans of calls that may have a key.
func (c *counter) spansOf(k *key) (all, failed int) {
	for _, i := range k.calls {
		all, failed = all+c.calls.list[i].spans, failed+c.calls.list[i].failed
	}
	return all, failed
}

// Ranks of inputs that the same traces have. The first one names the joined line.
const (
	rankVersion = iota // what was deployed
	rankFlag           // what was switched
	rankRequest        // what a request brings along
	rankPlace          // where it is processed
)

func rankOf(k *key) int {
	name, ofResource := strings.ToLower(k.key), k.place == tracestore.ResourceAttribute
	switch {
	case strings.HasPrefix(name, "deployment."), ofResource && strings.HasSuffix(name, "version"):
		return rankVersion
	case strings.HasPrefix(name, "feature_flag."):
		return rankFlag
	case ofResource:
		return rankPlace
	}
	return rankRequest
}
