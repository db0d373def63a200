package storetool

import (
	"github.com/parquet-go/parquet-go"
)

// parquetSpan defines the schema of an exported Parquet file. parquetRow writes the rows.
//
// Invalid UTF-8 is replaced by U+FFFD. Attribute values are text in the form that searches compare:
// numbers in decimal, `true`, bytes in base64, arrays and maps as JSON. If a key repeats, the first
// value is exported, as in searches.
type parquetSpan struct {
	TraceID      string  `parquet:"trace_id,dict"` // 32 lower-case hex digits
	SpanID       string  `parquet:"span_id"`       // 16
	ParentSpanID *string `parquet:"parent_span_id,optional"`
	Tenant       string  `parquet:"tenant,dict"`
	ServiceName  string  `parquet:"service_name,dict"`
	Name         string  `parquet:"name,dict"`
	Kind         string  `parquet:"kind,dict"`        // internal, server, client, producer, consumer, or empty
	StatusCode   string  `parquet:"status_code,dict"` // unset, ok, error
	StatusText   string  `parquet:"status_message,dict"`
	Start        int64   `parquet:"start_time,timestamp(nanosecond),delta"`
	End          int64   `parquet:"end_time,timestamp(nanosecond),delta"`
	Duration     int64   `parquet:"duration_ns"` // 0 if the end is before the start
	TraceState   string  `parquet:"trace_state,dict"`
	Flags        int64   `parquet:"flags,dict"`

	ScopeName         string            `parquet:"scope_name,dict"`
	ScopeVersion      string            `parquet:"scope_version,dict"`
	ScopeSchemaURL    string            `parquet:"scope_schema_url,dict"`
	ScopeAttributes   map[string]string `parquet:"scope_attributes" parquet-key:",dict" parquet-value:",dict"`
	ResourceSchemaURL string            `parquet:"resource_schema_url,dict"`
	Resource          map[string]string `parquet:"resource_attributes" parquet-key:",dict" parquet-value:",dict"`
	Attributes        map[string]string `parquet:"attributes" parquet-key:",dict" parquet-value:",dict"`

	Events []parquetEvent `parquet:"events,list"`
	Links  []parquetLink  `parquet:"links,list"`

	DroppedAttributes int64 `parquet:"dropped_attributes_count,dict"`
	DroppedEvents     int64 `parquet:"dropped_events_count,dict"`
	DroppedLinks      int64 `parquet:"dropped_links_count,dict"`
}

type parquetEvent struct {
	Time              int64             `parquet:"time,timestamp(nanosecond)"`
	Name              string            `parquet:"name,dict"`
	Attributes        map[string]string `parquet:"attributes" parquet-key:",dict" parquet-value:",dict"`
	DroppedAttributes int64             `parquet:"dropped_attributes_count,dict"`
}

type parquetLink struct {
	TraceID           string            `parquet:"trace_id"`
	SpanID            string            `parquet:"span_id"`
	TraceState        string            `parquet:"trace_state,dict"`
	Attributes        map[string]string `parquet:"attributes" parquet-key:",dict" parquet-value:",dict"`
	DroppedAttributes int64             `parquet:"dropped_attributes_count,dict"`
}

func newParquetSchema() *parquet.Schema {
	return parquet.NewSchema("span", parquet.SchemaOf(parquetSpan{}))
}
