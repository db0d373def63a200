package harness

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// UIAnswer is a response of the query API at /api, as its clients decode it.
type UIAnswer struct {
	Data   json.RawMessage
	Total  int
	Errors []struct {
		Code    int
		Msg     string
		TraceID string
	}
}

// UITrace is a trace in a response of the query API.
type UITrace struct {
	TraceID   string
	Spans     []UISpan
	Processes map[string]UIProcess
	Warnings  []string
}

// UISpan is a span in a response of the query API. Times are in microseconds.
type UISpan struct {
	TraceID, SpanID, OperationName, ProcessID string
	References                                []UIReference
	StartTime, Duration                       int64
	Flags                                     uint32
	Tags                                      []UITag
	Logs                                      []UILog
	Warnings                                  []string
}

// UIReference refers to the parent of a span or to a linked span.
type UIReference struct{ RefType, TraceID, SpanID string }

// UILog is an event of a span.
type UILog struct {
	Timestamp int64
	Fields    []UITag
}

// UITag is an attribute.
type UITag struct {
	Key, Type string
	Value     json.RawMessage
}

// UIProcess is a resource.
type UIProcess struct {
	ServiceName string
	Tags        []UITag
}

// String returns key:type=value.
func (t UITag) String() string { return fmt.Sprintf("%s:%s=%s", t.Key, t.Type, t.Value) }

// TagStrings returns tags as key:type=value, sorted.
func TagStrings(tags []UITag) []string {
	out := make([]string, len(tags))
	for i, t := range tags {
		out[i] = t.String()
	}
	slices.Sort(out)
	return out
}

// Quote returns s as a JSON string without HTML escapes, as the query API writes it.
func Quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
