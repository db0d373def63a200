package rows

import (
	"maps"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Place says which part of a span a column holds. The numbers are part of the format.
type Place uint8

// The places. Columns of Attribute and EventAttribute have a key and any kind of value, the others the kind that is named here.
const (
	Attribute         Place = iota // attribute of the span
	Extra                          // bytes: attributes that have no column of their own, see AppendExtra
	Name                           // string: name of the span, where Shape.NameInRow
	TraceState                     // string
	StatusMessage                  // string
	Flags                          // int
	DroppedAttributes              // int
	DroppedEvents                  // int
	DroppedLinks                   // int
	EventTime                      // int: nanoseconds since the span's start; every event begins with it
	EventName                      // string
	EventDropped                   // int: dropped attributes of the event
	EventAttribute                 // attribute of the event before
	Events                         // bytes: all events, encoded as fields of a Span
	Links                          // bytes: all links, encoded as fields of a Span
	places                         // how many there are
)

// Column is one field that spans may have. Two columns of a table differ.
type Column struct {
	Place Place
	Kind  otlpdata.ValueKind
	Key   string // of Attribute and EventAttribute
}

// Resource is an interned resource. It belongs to one tenant.
type Resource struct {
	Tenant string
	otlpdata.Resource
}

// Service is a service of a tenant.
type Service struct{ Tenant, Name string }

// Shape is what spans of one kind have in common. A column may occur several times in Columns: repeated keys, several events.
type Shape struct {
	Tenant, Service string
	Name            string // as sent; "" where NameInRow
	// Columns says what the cells of a row hold, in this order: Attribute*, Extra, Name, TraceState, StatusMessage, Flags, Dropped*,
	// then of each event EventTime, EventName, EventDropped, EventAttribute*, or Events, then Links. All but EventTime are left out
	// where the span has none.
	// Several shapes may have one list; it must not be changed.
	Columns      []uint32
	Scope        uint32
	Kind, Status int32
	NameInRow    bool // the name is in a cell of place Name
	lost         bool
}

// Tables is a vocabulary: what the ids in rows mean. It only grows. Strings alias the records that they were read from.
type Tables struct {
	Services  []Service
	Columns   []Column
	Words     [][]string // by column
	Scopes    []otlpdata.Scope
	Resources []Resource
	Shapes    []Shape
	lost      *lost   // nil: nothing was lost
	shared    *shared // while ReadTables reads
	texts     int     // bytes of texts and lists that ReadTables has copied
}

// lost are definitions that a damaged log no longer has. Rows that need one are no longer readable.
type lost struct {
	services, columns, scopes, resources map[uint32]bool
	words                                map[[2]uint32]bool
	gaps                                 int // how many definitions were never read, shapes included
}

func (l *lost) clone() *lost {
	if l == nil {
		return nil
	}
	return &lost{maps.Clone(l.services), maps.Clone(l.columns), maps.Clone(l.scopes), maps.Clone(l.resources), maps.Clone(l.words), l.gaps}
}

// Snapshot returns the tables as they are now. It may be read while the original grows: both share what is in it, and nothing that is in a
// table ever changes.
func (t *Tables) Snapshot() *Tables {
	s := *t
	s.Words = slices.Clone(t.Words)
	s.lost = t.lost.clone()
	return &s
}

// TraceStateOf returns the position of the tracestate in the columns of a shape; -1: its spans have none.
func (t *Tables) TraceStateOf(s *Shape) int {
	for i, id := range s.Columns {
		if int(id) < len(t.Columns) && t.Columns[id].Place == TraceState && t.Columns[id].Kind == otlpdata.ValueString {
			return i
		}
	}
	return -1
}

// Lost tells how many definitions are missing because the records that held them were.
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

func (t *Tables) lose() *lost {
	if t.lost == nil {
		t.lost = &lost{services: map[uint32]bool{}, columns: map[uint32]bool{}, scopes: map[uint32]bool{}, resources: map[uint32]bool{},
			words: map[[2]uint32]bool{}}
	}
	return t.lost
}
