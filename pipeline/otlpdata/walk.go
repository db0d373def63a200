package otlpdata

import (
	"math"
	"sync"
	"unsafe"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// Visitor receives what [Walk] reads, in wire order, each resource before its scopes and each scope
// before its spans (even if it follows them on the wire). A resource and its slices are valid until
// the next resource, a scope until the next scope or resource, a span only during the call. Strings
// and Raw alias the chunk; keeping them keeps the whole chunk in memory. An error ends the walk and
// is returned by Walk.
type Visitor interface {
	Resource(r *Resource) error
	Scope(s *Scope) error
	Span(s *Span) error
}

// Walk reads one encoded ExportTraceServiceRequest (opentelemetry-proto, collector/trace/v1) and
// calls v for every resource, scope and span. It allocates nothing per span. Chunks of a Batch
// are valid, so for them Walk returns only errors of the visitor.
func Walk(chunk []byte, v Visitor) error {
	_, err := walk(chunk, v, Limits{Bytes: math.MaxInt, Spans: math.MaxInt, Depth: maxDepth, Items: math.MaxInt}, false)
	return err
}

// walk is Walk with limits. With checkOnly it validates everything but does not keep lists: the
// visitor gets only the attributes that determine Resource.Service and Span.NativeFlags. This saves
// memory, because the lists of a request of a few MiB can take a hundred MiB and many requests may
// be validated at the same time. memory is the number of bytes that a walk with lists would
// allocate for them; it is only valid with checkOnly.
func walk(chunk []byte, v Visitor, lim Limits, checkOnly bool) (memory int, err error) {
	w := walkers.Get().(*walker)
	defer w.release()
	return w.walk(chunk, v, lim, checkOnly)
}

// walk is like the function walk but reuses the walker.
func (w *walker) walk(chunk []byte, v Visitor, lim Limits, checkOnly bool) (memory int, err error) {
	w.v, w.lim, w.checkOnly, w.spans, w.groups, w.longest = v, lim.orDefault(), checkOnly, 0, 0, longest{}
	err = w.request(chunk)
	if err == errDepth {
		err = errTooDeep(w.lim.Depth)
	}
	return w.longest.memory(), err
}

var walkers = sync.Pool{New: func() any { return new(walker) }}

// walker holds the values that are passed to the visitor, so that their slices are reused for each
// span.
type walker struct {
	v         Visitor
	lim       Limits
	checkOnly bool // do not keep lists
	signal    Signal
	spans     int // or log records
	groups    int // resources and scopes
	resource  Resource
	scope     Scope
	span      Span
	nested    []KeyValue // attributes of the span's events and links
	items     listLengths
	longest   longest
}

// listLengths are the lengths of the lists of one resource, scope or span on the wire.
type listLengths struct{ attributes, nested, events, links int }

// grow sets each length of l to the maximum of l and o.
func (l *listLengths) grow(o *listLengths) {
	l.attributes, l.nested = max(l.attributes, o.attributes), max(l.nested, o.nested)
	l.events, l.links = max(l.events, o.events), max(l.links, o.links)
}

// longest are the lengths of the longest lists of a request.
type longest struct{ resource, scope, span listLengths }

// memory returns the number of bytes that a walker allocates for these lists. Slices grow by
// doubling.
func (l *longest) memory() int {
	const growth = 2
	attributes := l.resource.attributes + l.scope.attributes + l.span.attributes + l.span.nested
	return growth * (attributes*int(unsafe.Sizeof(KeyValue{})) +
		l.span.events*int(unsafe.Sizeof(Event{})) + l.span.links*int(unsafe.Sizeof(Link{})))
}

func (w *walker) release() {
	// The values alias the chunk, which the pool must not keep alive.
	clear(w.resource.Attributes[:cap(w.resource.Attributes)])
	clear(w.scope.Attributes[:cap(w.scope.Attributes)])
	clear(w.span.Attributes[:cap(w.span.Attributes)])
	clear(w.span.Events[:cap(w.span.Events)])
	clear(w.span.Links[:cap(w.span.Links)])
	clear(w.nested[:cap(w.nested)])
	const maxPooled = 4096
	if cap(w.nested) > maxPooled || cap(w.span.Attributes) > maxPooled || cap(w.span.Events) > maxPooled ||
		cap(w.span.Links) > maxPooled || cap(w.resource.Attributes) > maxPooled || cap(w.scope.Attributes) > maxPooled {
		return
	}
	w.v, w.signal = nil, SignalTraces
	w.resource = Resource{Attributes: w.resource.Attributes[:0]}
	w.scope = Scope{Attributes: w.scope.Attributes[:0]}
	w.span = Span{Attributes: w.span.Attributes[:0], Events: w.span.Events[:0], Links: w.span.Links[:0]}
	walkers.Put(w)
}

func (w *walker) request(b []byte) error {
	if len(b) > w.lim.Bytes {
		return errTooManyBytes(w.lim.Bytes)
	}
	var f protoenc.Reader
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.Next(b, pos); err != nil {
			return err
		}
		if f.Tag == 1<<3|protoenc.Length {
			err = w.resourceSpans(f.Data)
		} else {
			err = f.Unknown(1 << 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const deprecatedScopeSpans = 1000<<3 | protoenc.Length

// resourceSpans reads the message twice: the resource may follow its spans and may be repeated, but
// the visitor gets it first.
func (w *walker) resourceSpans(b []byte) error {
	scopes, deprecated, err := w.groupResource(b)
	if err != nil {
		return err
	}
	r := &w.resource
	w.longest.resource.grow(&w.items)
	r.Service = ServiceName(r.Attributes)
	if err := w.v.Resource(r); err != nil {
		return err
	}
	var f protoenc.Reader
	for pos := 0; pos < len(b) && scopes+deprecated > 0; {
		pos, _ = f.Next(b, pos)
		var err error
		switch f.Tag {
		case 2<<3 | protoenc.Length:
			err = w.scopeSpans(f.Data, w.v)
		case deprecatedScopeSpans:
			// As in pdata, the old field number is always decoded, but ignored if the new one is
			// present.
			if scopes == 0 {
				err = w.scopeSpans(f.Data, w.v)
			} else {
				err = w.scopeSpans(f.Data, discard{})
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// groupResource reads the resource of a ResourceSpans and checks the framing of the message. It
// returns the number of ScopeSpans with the current and the deprecated field number.
func (w *walker) groupResource(b []byte) (scopes, deprecated int, err error) {
	if err := w.countGroup(); err != nil {
		return 0, 0, err
	}
	r := &w.resource
	*r = Resource{Attributes: r.Attributes[:0]}
	w.items = listLengths{}
	var f protoenc.Reader
	for pos := 0; pos < len(b); {
		if pos, err = f.Next(b, pos); err != nil {
			return 0, 0, err
		}
		switch f.Tag {
		case 1<<3 | protoenc.Length:
			err = w.decodeResource(f.Data)
		case 2<<3 | protoenc.Length:
			scopes++
		case 3<<3 | protoenc.Length:
			r.SchemaURL = unsafeString(f.Data)
		case deprecatedScopeSpans:
			deprecated++
		default:
			if f.Tag>>3 == 1000 {
				return 0, 0, protoenc.ErrWireType
			}
			err = f.Unknown(0b1110)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return scopes, deprecated, nil
}

// discard is the visitor of spans that are only validated.
type discard struct{}

func (discard) Resource(*Resource) error { return nil }
func (discard) Scope(*Scope) error       { return nil }
func (discard) Span(*Span) error         { return nil }

func (w *walker) countGroup() error {
	if w.groups++; w.groups > w.lim.Spans {
		return errTooManyGroups(w.lim.Spans)
	}
	return nil
}

func (w *walker) scopeSpans(b []byte, v Visitor) error {
	if err := w.groupScope(b); err != nil {
		return err
	}
	w.longest.scope.grow(&w.items)
	if err := v.Scope(&w.scope); err != nil {
		return err
	}
	var f protoenc.Reader
	for pos := 0; pos < len(b); {
		var err error
		if pos, _ = f.Next(b, pos); f.Tag != 2<<3|protoenc.Length {
			continue
		}
		if w.signal == SignalLogs {
			if err = w.checkRecord(f.Data); err != nil {
				return err
			}
			if c, ok := v.(*counter); ok {
				c.add(false, false)
			}
			continue
		}
		if err = w.decodeSpan(f.Data); err != nil {
			return err
		}
		if w.checkOnly {
			w.longest.span.grow(&w.items)
		}
		if err = v.Span(&w.span); err != nil {
			return err
		}
	}
	return nil
}

// groupScope reads the scope of a ScopeSpans, checks the framing of the message and counts its
// spans.
func (w *walker) groupScope(b []byte) error {
	if err := w.countGroup(); err != nil {
		return err
	}
	s := &w.scope
	*s = Scope{Attributes: s.Attributes[:0]}
	w.items = listLengths{}
	var f protoenc.Reader
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.Next(b, pos); err != nil {
			return err
		}
		switch f.Tag {
		case 1<<3 | protoenc.Length:
			err = w.decodeScope(f.Data)
		case 2<<3 | protoenc.Length:
			if w.spans++; w.spans > w.lim.Spans {
				return errTooManyItemsOf(w.signal, w.lim.Spans)
			}
		case 3<<3 | protoenc.Length:
			s.SchemaURL = unsafeString(f.Data)
		default:
			err = f.Unknown(0b1110)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
