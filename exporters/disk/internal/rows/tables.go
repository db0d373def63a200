package rows

import (
	"iter"
	"maps"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Place identifies the part of a span that a column holds. The numbers are part of the file format.
type Place uint8

// The places. Columns of Attribute and EventAttribute have a key and any kind of value; the others
// have the kind given here.
const (
	Attribute         Place = iota // attribute of the span
	Extra                          // bytes: attributes without a column of their own, see AppendExtra
	Name                           // string: name of the span, if Shape.NameInRow
	TraceState                     // string
	StatusMessage                  // string
	Flags                          // int
	DroppedAttributes              // int
	DroppedEvents                  // int
	DroppedLinks                   // int
	EventTime                      // int: nanoseconds since the span's start; first column of every event
	EventName                      // string
	EventDropped                   // int: number of dropped attributes of the event
	EventAttribute                 // attribute of the preceding event
	Events                         // bytes: all events, encoded as fields of a Span
	Links                          // bytes: all links, encoded as fields of a Span
	numPlaces                      // number of places
)

// Column is a field that spans may have. All columns of a vocabulary are distinct.
type Column struct {
	Place Place
	Kind  otlpdata.ValueKind
	Key   string // of Attribute and EventAttribute
}

// Resource is an interned resource of one tenant.
type Resource struct {
	Tenant string
	otlpdata.Resource
}

// Service is a service of a tenant.
type Service struct{ Tenant, Name string }

// Shape holds the properties that similar spans have in common.
type Shape struct {
	Tenant, Service string
	Name            string // as sent; "" if NameInRow
	// Columns are the column ids of the cells, in this order: Attribute*, Extra, Name, TraceState,
	// StatusMessage, Flags, Dropped*; then for each event EventTime, EventName, EventDropped,
	// EventAttribute*, or Events for all; then Links. All but EventTime are omitted if the span has
	// no such value. A column may occur several times: repeated keys, several events. Shapes may
	// share a list; it must not be modified.
	Columns      []uint32
	Scope        uint32
	Kind, Status int32
	NameInRow    bool // the name is in a cell of place Name
	lost         bool // the definition, or one that it refers to, was lost
}

// Tables is a vocabulary: it maps the ids in rows to their definitions. It is append-only. Strings
// alias the records that they were read from.
type Tables struct {
	Services  []Service
	Columns   []Column
	Words     [][]string // by column
	Scopes    []otlpdata.Scope
	Resources []Resource
	Shapes    []Shape
	lost      *lostDefs // nil: nothing was lost
	interner  *interner // while ReadTables reads
	texts     int       // bytes of texts and lists that ReadTables has copied
}

// lostDefs records the definitions that are missing because a log is damaged. Rows that refer to a
// missing definition are unreadable.
type lostDefs struct {
	services, columns, scopes, resources map[uint32]bool
	words                                map[[2]uint32]bool
	gaps                                 int // number of missing definitions, including shapes
}

func (l *lostDefs) clone() *lostDefs {
	if l == nil {
		return nil
	}
	return &lostDefs{services: maps.Clone(l.services), columns: maps.Clone(l.columns), scopes: maps.Clone(l.scopes),
		resources: maps.Clone(l.resources), words: maps.Clone(l.words), gaps: l.gaps}
}

// Snapshot returns a copy of the current tables. It may be read while the original grows: both
// share their entries, which never change.
func (t *Tables) Snapshot() *Tables {
	s := *t
	s.Words = slices.Clone(t.Words)
	s.lost = t.lost.clone()
	return &s
}

// TraceStateOf returns the position of the tracestate in the columns of a shape, or -1 if its spans
// have none.
func (t *Tables) TraceStateOf(s *Shape) int {
	for i, id := range s.Columns {
		if int(id) < len(t.Columns) && t.Columns[id].Place == TraceState && t.Columns[id].Kind == otlpdata.ValueString {
			return i
		}
	}
	return -1
}

// AttributeKeys returns the keys of the span attributes of a shape, except attributes in Extra and
// attributes whose definitions were lost.
func (t *Tables) AttributeKeys(s *Shape) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, id := range s.Columns {
			if int(id) < len(t.Columns) && t.Columns[id].Place == Attribute && !yield(t.Columns[id].Key) {
				return
			}
		}
	}
}

// Lost returns the number of definitions that are missing because their records were lost.
func (t *Tables) Lost() int {
	if t.lost == nil {
		return 0
	}
	n := len(t.lost.services) + len(t.lost.columns) + len(t.lost.scopes) + len(t.lost.resources) + len(t.lost.words)
	for i := range t.Shapes {
		if t.Shapes[i].lost {
			n++
		}
	}
	return n
}

func (t *Tables) lostDefinitions() *lostDefs {
	if t.lost == nil {
		t.lost = &lostDefs{services: map[uint32]bool{}, columns: map[uint32]bool{}, scopes: map[uint32]bool{},
			resources: map[uint32]bool{}, words: map[[2]uint32]bool{}}
	}
	return t.lost
}
