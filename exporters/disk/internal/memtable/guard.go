package memtable

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// commonShare: a key is common if at least one of so many shapes has it.
const commonShare = 8

// service is one service of a tenant and what the guard knows of it.
type service struct {
	tenant, name string
	number       uint32 // 1 + its id in the tables; 0: it is not defined there yet
	shapes       int
	names        index // set of the span names that are part of shapes
	kinds        [otherKind + 1]*guard
}

// otherKind stands for all span kinds that OTLP does not know.
const otherKind = otlpdata.KindConsumer + 1

// guard knows the key sets of a service and a span kind. It remembers hashes: a collision costs a shape more or less, nothing else.
type guard struct {
	sets   index // lists of attribute keys
	events index // lists of the places and keys of events
	common index // the keys that many shapes had when there were too many lists
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

// first returns the form to look for first.
func (n *interner) first(s *otlpdata.Span) form {
	var f form
	if len(s.Attributes) > maxAttributes {
		f.attributes = asBlob
	}
	if n.t.thrifty(n.service()) {
		return form{nameInRow: true, attributes: f.attributes, events: asBlob}
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

// choose decides the form of a span that has no shape yet in the form in which its fields are listed. It leaves the fields of the new form.
func (n *interner) choose(s *otlpdata.Span, f form) form {
	svc, limits := n.service(), &n.t.options.Limits
	if n.t.crowded(svc) {
		f = form{nameInRow: true, attributes: asBlob, events: asBlob}
		n.fields(s, f)
		return f
	}
	old, g := f, svc.guard(s.Kind)
	attributes, events := setHashes(n.list)
	f.nameInRow = f.nameInRow || !admit(&svc.names, n.head.name, limits.Names)
	if f.events == asColumns && !admit(&g.events, events, limits.KeySets) {
		f.events = asBlob
	}
	if f.attributes == asColumns && !admit(&g.sets, attributes, limits.KeySets) {
		f.attributes = asCommon
	}
	if f == old {
		return f
	}
	n.fields(s, f)
	if f.attributes != asCommon {
		return f
	}
	if attributes, _ = setHashes(n.list); !admit(&g.sets, attributes, 2*limits.KeySets) {
		f.attributes = asBlob
		n.fields(s, f)
	}
	return f
}

// crowded reports whether a service gets no more shapes of its own choice.
func (t *Table) crowded(s *service) bool {
	l := &t.options.Limits
	return s.shapes >= l.ServiceShapes || len(t.shapes) >= l.Shapes || len(t.columns) >= l.Columns
}

// thrifty reports whether names and events stay out of the shapes of a service: what varies independently multiplies. While the service
// has few shapes, those of others do not count.
func (t *Table) thrifty(s *service) bool {
	const few = 64
	l := &t.options.Limits
	return s.shapes >= l.ServiceShapes/thriftShare || s.shapes >= few && len(t.shapes) >= l.Shapes/thriftShare
}

func admit(set *index, hash uint64, limit int) bool { return set.used < limit || set.has(hash) }

// setHashes hashes the attributes' part and the events' part of a list of fields. No attributes or events are a set, too.
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

// observe counts a new shape of a service, whose fields' hashes and places are given.
func (t *Table) observe(id uint32, list []field) {
	shape, s := &t.tables.Shapes[id], &t.services[t.shapes[id].service]
	s.shapes++
	g := s.guard(shape.Kind)
	before := s.names.bytes() + g.sets.bytes() + g.events.bytes()
	if !shape.NameInRow {
		s.names.remember(t.hash.text(shape.Name))
	}
	attributes, events := setHashes(list)
	g.events.remember(events)
	full := g.sets.used >= t.options.Limits.KeySets
	g.sets.remember(attributes)
	t.grown += s.names.bytes() + g.sets.bytes() + g.events.bytes() - before
	if !full && g.sets.used >= t.options.Limits.KeySets {
		t.findCommon(t.shapes[id].service, guardOf(shape.Kind), g)
		t.grown += g.common.bytes()
	}
}

// findCommon notes which attribute keys of a service and kind are common by now.
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
			g.common.remember(t.columns[c].hash)
		}
	}
}
