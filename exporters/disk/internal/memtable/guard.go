package memtable

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// commonShare is an inverse share: a key is common if at least 1/commonShare of the shapes have it.
const commonShare = 8

// service is a service of a tenant, with the state of the guard.
type service struct {
	tenant, name string
	number       uint32 // 1 + id in the tables; 0: not defined there yet
	shapes       int
	names        index // set of the span names that are part of shapes
	kinds        [otherKind + 1]*guard
}

// otherKind is the kind of spans whose kind OTLP does not define.
const otherKind = otlpdata.KindConsumer + 1

// guard tracks the key sets of a service and span kind. It stores only hashes: a collision changes
// the number of shapes by one, with no other effect.
type guard struct {
	sets   index // sets of attribute keys
	events index // lists of places and keys of events
	common index // keys that many shapes had when the limit of sets was reached
}

func (s *service) guard(kind int32) *guard {
	k := guardOf(kind)
	if s.kinds[k] == nil {
		s.kinds[k] = new(guard)
	}
	return s.kinds[k]
}

func guardOf(kind int32) int32 {
	if kind < 0 || kind > otherKind {
		return otherKind
	}
	return kind
}

// initialLayout returns the layout to try first.
func (n *interner) initialLayout(s *otlpdata.Span) spanLayout {
	var f spanLayout
	if len(s.Attributes) > maxAttributes {
		f.attributes = asBlob
	}
	if n.t.shouldSimplify(n.service()) {
		return spanLayout{nameInRow: true, attributes: f.attributes, events: asBlob}
	}
	attributes := 0
	for i := range s.Events {
		attributes += len(s.Events[i].Attributes)
	}
	if len(s.Events) > maxEvents || attributes > maxEventAttributes {
		f.events = asBlob
	}
	return f
}

// chooseLayout chooses the layout of a span that has no shape in layout f. It replaces the fields
// in n.list, which belong to layout f, with the fields of the new layout.
func (n *interner) chooseLayout(s *otlpdata.Span, f spanLayout) spanLayout {
	svc, limits := n.service(), &n.t.options.Limits
	if n.t.atShapeLimit(svc) {
		f = spanLayout{nameInRow: true, attributes: asBlob, events: asBlob}
		n.fields(s, f)
		return f
	}
	old, g := f, svc.guard(s.Kind)
	attributes, events := setHashes(n.list)
	f.nameInRow = f.nameInRow || !mayAdd(&svc.names, n.head.name, limits.Names)
	if f.events == asColumns && !mayAdd(&g.events, events, limits.KeySets) {
		f.events = asBlob
	}
	if f.attributes == asColumns && !mayAdd(&g.sets, attributes, limits.KeySets) {
		f.attributes = asCommonColumns
	}
	if f == old {
		return f
	}
	n.fields(s, f)
	if f.attributes != asCommonColumns {
		return f
	}
	if attributes, _ = setHashes(n.list); !mayAdd(&g.sets, attributes, 2*limits.KeySets) {
		f.attributes = asBlob
		n.fields(s, f)
	}
	return f
}

// atShapeLimit reports whether the spans of a service get only the simplest shape.
func (t *Table) atShapeLimit(s *service) bool {
	l := &t.options.Limits
	return s.shapes >= l.ServiceShapes || len(t.shapes) >= l.Shapes || len(t.columns) >= l.Columns
}

// shouldSimplify reports whether new shapes of a service leave names and events to the rows. Names,
// key sets and events vary independently, so the number of shapes can be the product of their
// numbers. While a service has few shapes, the shapes of other services do not count.
func (t *Table) shouldSimplify(s *service) bool {
	const few = 64
	l := &t.options.Limits
	return s.shapes >= l.ServiceShapes/simplifyShare || s.shapes >= few && len(t.shapes) >= l.Shapes/simplifyShare
}

func mayAdd(set *index, hash uint64, limit int) bool { return set.used < limit || set.has(hash) }

// setHashes returns the hashes of the attribute fields and of the event fields of a list. An empty
// set has a hash as well.
func setHashes(list []field) (attributes, events uint64) {
	for i := range list {
		switch list[i].place {
		case rows.Attribute:
			attributes = fold(attributes, list[i].hash)
		case rows.EventTime, rows.EventName, rows.EventDropped, rows.EventAttribute:
			events = fold(events, list[i].hash)
		}
	}
	return attributes, events
}

// countShape updates the guard for a new shape with the given fields.
func (t *Table) countShape(id uint32, list []field) {
	shape, s := &t.tables.Shapes[id], &t.services[t.shapes[id].service]
	s.shapes++
	g := s.guard(shape.Kind)
	before := s.names.bytes() + g.sets.bytes() + g.events.bytes()
	if !shape.NameInRow {
		s.names.addToSet(t.hash.text(shape.Name))
	}
	attributes, events := setHashes(list)
	g.events.addToSet(events)
	full := g.sets.used >= t.options.Limits.KeySets
	g.sets.addToSet(attributes)
	t.otherBytes += s.names.bytes() + g.sets.bytes() + g.events.bytes() - before
	if !full && g.sets.used >= t.options.Limits.KeySets {
		t.findCommon(t.shapes[id].service, guardOf(shape.Kind), g)
		t.otherBytes += g.common.bytes()
	}
}

// findCommon determines the common attribute keys of a service and kind.
func (t *Table) findCommon(service uint32, kind int32, g *guard) {
	uses, shapes := map[uint32]int{}, 0
	for id := range t.tables.Shapes {
		s := &t.tables.Shapes[id]
		if t.shapes[id].service != service || !t.shapes[id].known || guardOf(s.Kind) != kind {
			continue
		}
		shapes++
		for _, c := range s.Columns {
			uses[c]++
		}
	}
	for c, n := range uses {
		if t.tables.Columns[c].Place == rows.Attribute && n*commonShare >= shapes {
			g.common.addToSet(t.columns[c].hash)
		}
	}
}
