package tracestore

import (
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/failure"
)

// Place is where the value of a field comes from.
type Place uint8

// The places of a field. Attributes are looked up by key. All others are properties of the span or
// of its trace and have no key. A span has exactly one value, possibly "", for each property; the
// exceptions are EventName (one for each event), ParentID, AnyText, ErrorGroup and the properties
// of the trace.
//
// To add a property, add a constant and its row in the table of places. Parsers, completion, facets
// and documentation read the table. Stores with columns of their own bind the property in one
// place: the `disk` exporter in scan.bindings, the `clickhouse` exporter in where.Column.
const (
	AnyAttribute Place = iota // span, resource, scope, event and link attributes
	SpanAttribute
	ResourceAttribute
	ScopeAttribute
	EventAttribute
	LinkAttribute
	Service // service name as corrected by otlpdata.ServiceName
	Name    // span name as corrected by otlpdata.Span.Operation
	Kind    // client, server, producer, consumer, internal, or ""
	Status  // unset, ok, error
	StatusMessage
	Duration // nanoseconds, as corrected by otlpdata.Span.Duration
	ScopeName
	ScopeVersion
	EventName
	ParentID      // 16 hex digits; no value for a root span
	AnyText       // Service, Name, StatusMessage, every EventName, and every attribute
	TraceDuration // nanoseconds from the first start to the last end in the trace; see Span.Trace
	RootService   // Summary.RootService of the trace
	RootName      // Summary.RootName of the trace
	ChildCount    // number of spans whose parent is the span; see Span.Children
	ErrorGroup    // failure.Group of a span with the status error; other spans have none
	TraceID       // 32 hex digits
	SpanID        // 16 hex digits
	NestedLeft    // NestedSet.Left
	NestedRight   // NestedSet.Right
	NestedParent  // NestedSet.Parent
	EventTime     // nanoseconds from the start of the span to each event
	LinkTraceID   // of each link, 32 hex digits
	LinkSpanID    // of each link, 16 hex digits
)

// FieldType is the type of the literals that fields of a place are compared with.
type FieldType string

// The types of fields.
const (
	AttributeField FieldType = "attribute" // values of any type
	TextField      FieldType = "text"
	WordField      FieldType = "word" // one of PlaceInfo.Words
	DurationField  FieldType = "duration"
	NumberField    FieldType = "number"
	BooleanField   FieldType = "boolean" // a Shorthand
)

// PlaceInfo is a row of the table of places. Callers must not modify it.
type PlaceInfo struct {
	Place Place
	// Name is the name in searches, for attributes the prefix of the key. It must not change,
	// because it also encodes the place in messages between programs.
	Name    string
	TraceQL []string // names in TraceQL and in Tempo's API, without attributes
	Aliases []string // further names in searches
	Type    FieldType
	Words   []string // of a WordField: all values as written in searches, the most useful first
	Empty   string   // the word for the value ""
	Doc     string   // values, for users
	OfTrace bool     // see Place.OfTrace
	PerSpan bool     // of a place with OfTrace: spans of a trace may have different values
	Default bool     // counted by facets of a query that names no fields
	// SearchOnly: not available in facets and groups, because it only combines the values of other
	// fields.
	SearchOnly bool
	// Catalog is Service or Name if the values are names of services or operations; see [Catalog].
	// Otherwise it is zero, and a catalog lists only values of attributes.
	Catalog Place
	Keys    []string // keys in logfmt searches of Tempo's API
	Tag     string   // key of a tag in searches of existing clients
	OTelTag string   // the same for a tag that may also be the key of an attribute
	// value returns the value in a span. It is nil for places with any number of values.
	value func(s Span) (v otlpdata.Value, ok bool)
}

// places is the table of places, by place.
var places = [...]PlaceInfo{
	{Place: AnyAttribute, Name: ".", Type: AttributeField, Doc: "an attribute in any of these places"},
	{Place: SpanAttribute, Name: "span.", Type: AttributeField, Doc: "an attribute of the span"},
	{Place: ResourceAttribute, Name: "resource.", Type: AttributeField, Doc: "an attribute of its resource"},
	{Place: ScopeAttribute, Name: "instrumentation.", Type: AttributeField, Doc: "an attribute of its instrumentation scope"},
	{Place: EventAttribute, Name: "event.", Type: AttributeField, Doc: "an attribute of one of its events"},
	{Place: LinkAttribute, Name: "link.", Type: AttributeField, Doc: "an attribute of one of its links"},
	{
		Place: Service, Name: "service", Aliases: []string{"service.name", ".service.name", "resource.service.name"}, Type: TextField,
		Doc: "text", Default: true, Catalog: Service, Keys: []string{"service.name"},
		value: func(s Span) (otlpdata.Value, bool) { return otlpdata.StringValue(s.Resource.Service), true },
	},
	{
		Place: Name, Name: "name", TraceQL: []string{"name", "span:name"}, Type: TextField,
		Doc: "text: the span name", Default: true, Catalog: Name, Keys: []string{"name"},
		value: func(s Span) (otlpdata.Value, bool) { return otlpdata.StringValue(s.Operation()), true },
	},
	{
		Place: Kind, Name: "kind", TraceQL: []string{"kind", "span:kind"}, Type: WordField,
		Words: []string{"server", "client", "producer", "consumer", "internal", "unspecified"}, Empty: "unspecified",
		Default: true, Keys: []string{"kind"}, Tag: "span.kind",
		value: func(s Span) (otlpdata.Value, bool) { return otlpdata.StringValue(s.KindName()), true },
	},
	{
		Place: Status, Name: "status", TraceQL: []string{"status", "span:status"}, Type: WordField,
		Words: []string{"error", "ok", "unset"}, Default: true, Keys: []string{"status"}, Tag: "span.status",
		OTelTag: "otel.status_code",
		value: func(s Span) (otlpdata.Value, bool) {
			return otlpdata.StringValue(otlpdata.StatusName(s.StatusCode)), true
		},
	},
	{
		Place: StatusMessage, Name: "statusMessage", TraceQL: []string{"statusMessage", "span:statusMessage"}, Type: TextField,
		Doc: "text", Keys: []string{"statusMessage"}, OTelTag: "otel.status_description",
		value: func(s Span) (otlpdata.Value, bool) { return otlpdata.StringValue(s.StatusMessage), true },
	},
	{
		Place: Duration, Name: "duration", TraceQL: []string{"duration", "span:duration"}, Type: DurationField,
		Doc: "durations", Keys: []string{"duration"},
		value: func(s Span) (otlpdata.Value, bool) {
			// A float, because an unsigned 64-bit number of nanoseconds may not fit into an integer
			// value.
			ns, _ := s.Duration()
			return otlpdata.DoubleValue(float64(ns)), true
		},
	},
	{
		Place: ScopeName, Name: "instrumentation:name", TraceQL: []string{"instrumentation:name"}, Type: TextField,
		Doc: "text", Tag: "scope.name", OTelTag: "otel.scope.name",
		value: func(s Span) (otlpdata.Value, bool) { return otlpdata.StringValue(s.Scope.Name), true },
	},
	{
		Place: ScopeVersion, Name: "instrumentation:version", TraceQL: []string{"instrumentation:version"}, Type: TextField,
		Doc: "text", Tag: "scope.version", OTelTag: "otel.scope.version",
		value: func(s Span) (otlpdata.Value, bool) { return otlpdata.StringValue(s.Scope.Version), true },
	},
	{
		Place: EventName, Name: "event:name", TraceQL: []string{"event:name"}, Type: TextField,
		Doc: "text; one value for each event", OTelTag: "event",
	},
	{
		Place: ParentID, Name: "span:parentID", TraceQL: []string{"span:parentID"}, Type: TextField,
		Doc: "text: 16 hex digits; no value if the span has no parent",
		value: func(s Span) (otlpdata.Value, bool) {
			return otlpdata.StringValue(s.ParentID.String()), !s.ParentID.IsZero()
		},
	},
	{
		Place: AnyText, Name: "text", Type: TextField, SearchOnly: true,
		Doc: "text of the span: its service, name and status message, names of events, and values of attributes",
	},
	{
		Place: TraceDuration, Name: "trace.duration", TraceQL: []string{"trace:duration", "traceDuration"}, Type: DurationField,
		Doc: "durations: from the first start to the last end", OfTrace: true,
		value: ofTrace(func(t *Summary) otlpdata.Value { return otlpdata.DoubleValue(float64(t.End - t.Start)) }),
	},
	{
		Place: RootService, Name: "trace.rootService", TraceQL: []string{"trace:rootService", "rootServiceName"}, Type: TextField,
		Doc: "text", OfTrace: true, Catalog: Service, Keys: []string{"rootServiceName", "root.service.name"},
		value: ofTrace(func(t *Summary) otlpdata.Value { return otlpdata.StringValue(t.RootService) }),
	},
	{
		Place: RootName, Name: "trace.rootName", TraceQL: []string{"trace:rootName", "rootName"}, Type: TextField,
		Doc: "text", OfTrace: true, Catalog: Name, Keys: []string{"rootName", "root.name"},
		value: ofTrace(func(t *Summary) otlpdata.Value { return otlpdata.StringValue(t.RootName) }),
	},
	{
		Place: ChildCount, Name: "span:childCount", TraceQL: []string{"span:childCount", "childCount"}, Type: NumberField,
		Doc: "numbers: the spans of the trace whose parent is the span", OfTrace: true, PerSpan: true,
		value: func(s Span) (v otlpdata.Value, ok bool) {
			if s.Children == nil {
				return v, false
			}
			return otlpdata.IntValue(int64(s.Children())), true
		},
	},
	{
		Place: ErrorGroup, Name: "errorGroup", Type: TextField,
		Doc: "text: 16 hex digits, equal for spans with the status error that failed in the same way; other spans have no value",
		value: func(s Span) (v otlpdata.Value, ok bool) {
			if s.StatusCode != otlpdata.StatusError {
				return v, false
			}
			return otlpdata.StringValue(failure.Group(s.Resource.Service, s.Span)), true
		},
	},
	{
		Place: TraceID, Name: "trace:id", TraceQL: []string{"trace:id"}, Type: TextField, Doc: "text: 32 hex digits", OfTrace: true,
		value: ofTrace(func(t *Summary) otlpdata.Value { return otlpdata.StringValue(hex.EncodeToString(t.ID[:])) }),
	},
	{
		Place: SpanID, Name: "span:id", TraceQL: []string{"span:id"}, Type: TextField, Doc: "text: 16 hex digits",
		OfTrace: true, PerSpan: true,
		value: func(s Span) (otlpdata.Value, bool) { return otlpdata.StringValue(s.SpanID.String()), s.Nested != nil },
	},
	{
		Place: NestedLeft, Name: "nestedSetLeft", TraceQL: []string{"nestedSetLeft"}, Type: NumberField,
		Doc: "numbers: the position of the span in its trace", OfTrace: true, PerSpan: true,
		value: nested(func(n NestedSet) int32 { return n.Left }),
	},
	{
		Place: NestedRight, Name: "nestedSetRight", TraceQL: []string{"nestedSetRight"}, Type: NumberField,
		Doc: "numbers: the position after the descendants of the span", OfTrace: true, PerSpan: true,
		value: nested(func(n NestedSet) int32 { return n.Right }),
	},
	{
		Place: NestedParent, Name: "nestedSetParent", TraceQL: []string{"nestedSetParent"}, Type: NumberField,
		Doc: "numbers: `nestedSetLeft` of the parent, -1 for roots", OfTrace: true, PerSpan: true,
		value: nested(func(n NestedSet) int32 { return n.Parent }),
	},
	{
		Place: EventTime, Name: "event:timeSinceStart", TraceQL: []string{"event:timeSinceStart"}, Type: DurationField,
		Doc: "durations: from the start of the span to the event; one value for each event", OfTrace: true, PerSpan: true,
	},
	{
		Place: LinkTraceID, Name: "link:traceID", TraceQL: []string{"link:traceID"}, Type: TextField,
		Doc: "text: 32 hex digits; one value for each link", OfTrace: true, PerSpan: true,
	},
	{
		Place: LinkSpanID, Name: "link:spanID", TraceQL: []string{"link:spanID"}, Type: TextField,
		Doc: "text: 16 hex digits; one value for each link", OfTrace: true, PerSpan: true,
	},
}

// nested returns the function value of a number in NestedSet.
func nested(of func(NestedSet) int32) func(Span) (otlpdata.Value, bool) {
	return func(s Span) (v otlpdata.Value, ok bool) {
		if s.Nested == nil {
			return v, false
		}
		return otlpdata.IntValue(int64(of(s.Nested()))), true
	}
}

// ofTrace returns the function value of a property of the trace.
func ofTrace(of func(*Summary) otlpdata.Value) func(Span) (otlpdata.Value, bool) {
	return func(s Span) (v otlpdata.Value, ok bool) {
		if s.Trace == nil {
			return v, false
		}
		return of(s.Trace), true
	}
}

// Places returns the table of places, in the order of the constants. Callers must not modify it.
func Places() []PlaceInfo { return places[:] }

// Info returns the row of the table of places, which is zero for an unknown place.
func (p Place) Info() *PlaceInfo {
	if !p.known() {
		return &PlaceInfo{Place: p}
	}
	return &places[p]
}

// TextPlaces returns the properties that are values of [AnyText] in addition to all attributes.
// Callers must not modify the list.
func TextPlaces() []Place { return textPlaces }

var textPlaces = []Place{Service, Name, StatusMessage, EventName}

func (p Place) known() bool { return int(p) < len(places) }

// HasKey reports whether fields of this place are looked up by key.
func (p Place) HasKey() bool { return p <= LinkAttribute }

// OfTrace reports whether values depend on the whole trace. [Reader.Find] does not support such
// places in Query.Where.
func (p Place) OfTrace() bool { return p.known() && places[p].OfTrace }

// OfSpan reports whether spans of a trace may have different values.
func (p Place) OfSpan() bool { return !p.OfTrace() || places[p].PerSpan }

// Names returns all names of a property in searches, [PlaceInfo.Name] first.
func (i *PlaceInfo) Names() []string {
	names := []string{i.Name}
	for _, name := range slices.Concat(i.TraceQL, i.Aliases) {
		if name != i.Name {
			names = append(names, name)
		}
	}
	return names
}

// Shown returns a value as written in searches.
func (i *PlaceInfo) Shown(value string) string {
	if value == "" {
		return i.Empty
	}
	return value
}

// MarshalText implements [encoding.TextMarshaler] with the name of the place.
func (p Place) MarshalText() ([]byte, error) {
	if !p.known() {
		return nil, fmt.Errorf("unknown place %d of a field", p)
	}
	return []byte(places[p].Name), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Place) UnmarshalText(text []byte) error {
	for i := range places {
		if places[i].Name == string(text) {
			*p = Place(i)
			return nil
		}
	}
	return fmt.Errorf("unknown place %q of a field; the other program may have a different version", text)
}

// DefaultFacets returns the properties that a FacetQuery without fields counts.
func DefaultFacets() (fields []Field) {
	for i := range places {
		if places[i].Default {
			fields = append(fields, Field{Place: Place(i)})
		}
	}
	return fields
}

// Shorthand is a name that stands for a condition in searches, and is used like a boolean field.
type Shorthand struct {
	Name    string
	Cond    Cond
	Negated bool   // it stands for the negation of Cond
	Doc     string // meaning, for users
}

// Shorthands returns all shorthands.
func Shorthands() []Shorthand {
	return []Shorthand{
		{Name: "error", Cond: Cond{Field: Field{Place: Status}, Op: Eq, Value: Text("error")},
			Doc: "`true` if the status is error, otherwise `false`"},
		{Name: "root", Cond: Cond{Field: Field{Place: ParentID}, Op: Exists}, Negated: true,
			Doc: "`true` if the span has no parent, otherwise `false`"},
	}
}

// Expr returns the condition.
func (s *Shorthand) Expr() Expr {
	if s.Negated {
		return Not{Expr: s.Cond}
	}
	return s.Cond
}
