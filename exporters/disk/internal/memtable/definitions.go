package memtable

import (
	"fmt"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Approximate sizes in bytes.
const (
	columnBytes     = int64(unsafe.Sizeof(rows.Column{}) + unsafe.Sizeof(column{}) + unsafe.Sizeof([]string{}))
	wordBytes       = int64(unsafe.Sizeof(""))
	scopeBytes      = int64(unsafe.Sizeof(otlpdata.Scope{}))
	resourceBytes   = int64(unsafe.Sizeof(rows.Resource{})) + 4
	attributeBytes  = int64(unsafe.Sizeof(otlpdata.KeyValue{}))
	shapeBytes      = int64(unsafe.Sizeof(rows.Shape{}) + unsafe.Sizeof(shapeInfo{}))
	blockShapeBytes = int64(unsafe.Sizeof(source.BlockShape{}))
	serviceBytes    = int64(unsafe.Sizeof(service{}) + unsafe.Sizeof(guard{})) // few services have several guards
)

// maxLost is the maximum number of missing definitions of a table. It bounds the memory that a
// damaged log can make it allocate.
const maxLost = 1 << 16

// define adds an encoded rows.Definition to the arena, the tables and the indexes.
func (t *Table) define(item []byte) error {
	tag, payload, _, err := rows.NextItem(item)
	if err != nil {
		return err
	}
	at, payload := t.arena.put(tag, payload)
	t.repeats.fresh = append(t.repeats.fresh, at)
	return t.addDefinition(tag, payload)
}

// addDefinition adds a definition, whose payload is in the arena, to the tables and indexes.
func (t *Table) addDefinition(tag rows.Tag, payload []byte) error {
	d := rows.ReadDefinition(tag, payload)
	before := t.count(d)
	missing := t.missing(d, before)
	if t.lost+missing > maxLost {
		return fmt.Errorf("%w: too many records refer to definitions that are not in the log", rows.ErrCorrupt)
	}
	t.lost += missing
	known, err := t.tables.Define(tag, payload)
	if err == nil && !known {
		err = fmt.Errorf("%w: unknown item type %d", rows.ErrCorrupt, tag)
	}
	// Do this even after an error: if the column of a word is missing, the definition of the word
	// marks the column as lost.
	for len(t.columns) < len(t.tables.Columns) {
		t.columns = append(t.columns, column{})
		t.otherBytes += columnBytes
	}
	if err == nil && t.count(d) > before {
		t.indexDefinition(d, before)
	}
	return err
}

// count returns the number of definitions of the same kind as d.
func (t *Table) count(d rows.Definition) int {
	switch d.Tag {
	case rows.TagColumn:
		return len(t.tables.Columns)
	case rows.TagWord:
		if d.Column < uint64(len(t.tables.Words)) {
			return len(t.tables.Words[d.Column])
		}
	case rows.TagScope:
		return len(t.tables.Scopes)
	case rows.TagResource:
		return len(t.tables.Resources)
	case rows.TagShape:
		return len(t.tables.Shapes)
	case rows.TagService:
		return len(t.tables.Services)
	}
	return 0
}

// missing returns the number of definitions that were lost immediately before d. have is the number
// of known definitions of its kind.
func (t *Table) missing(d rows.Definition, have int) int {
	n := uint64(0)
	if d.ID > uint64(have) {
		n = min(d.ID-uint64(have), maxLost+1)
	}
	if columns := uint64(len(t.tables.Columns)); d.Tag == rows.TagWord && d.Column >= columns {
		n += min(d.Column-columns+1, maxLost+1)
	}
	return int(n)
}

// indexDefinition adds d, the last definition of its kind, to the indexes. before is the number of
// definitions of that kind before d was added. Definitions between before and d are lost.
func (t *Table) indexDefinition(d rows.Definition, before int) {
	switch d.Tag {
	case rows.TagColumn:
		t.indexColumn(uint32(d.ID))
	case rows.TagWord:
		t.indexWord(uint32(d.Column), before)
	case rows.TagScope:
		s := &t.tables.Scopes[d.ID]
		t.byScope.add(t.encodedHash("", s.SchemaURL, s.Raw), uint32(d.ID))
		t.otherBytes += int64(len(t.tables.Scopes)-before)*scopeBytes + int64(cap(s.Attributes))*attributeBytes
	case rows.TagResource:
		t.indexResource(uint32(d.ID), before)
	case rows.TagShape:
		t.indexShape(uint32(d.ID), before)
	case rows.TagService:
		s := t.tables.Services[d.ID]
		t.services[t.serviceID(s.Tenant, s.Name)].number = uint32(d.ID) + 1
	}
}

func (t *Table) indexColumn(id uint32) {
	c := &t.tables.Columns[id]
	info := &t.columns[id]
	info.known, info.hash, info.key = true, t.fieldHash(c.Place, c.Kind, c.Key), t.hash.text(c.Key)
	t.byColumn.add(info.hash, id)
}

func (t *Table) indexWord(column uint32, before int) {
	known := t.tables.Words[column]
	w := &t.columns[column].words
	size := w.index.bytes()
	w.index.add(t.hash.text(known[len(known)-1]), uint32(len(known)-1))
	t.otherBytes += int64(len(known)-before)*wordBytes + w.index.bytes() - size
}

func (t *Table) indexResource(id uint32, before int) {
	r := &t.tables.Resources[id]
	t.byResource.add(t.encodedHash(r.Tenant, r.SchemaURL, r.Raw), id)
	for len(t.serviceOf) < int(id) {
		t.serviceOf = append(t.serviceOf, 0)
	}
	t.serviceOf = append(t.serviceOf, t.serviceID(r.Tenant, r.Service))
	t.otherBytes += int64(int(id)+1-before)*resourceBytes + int64(cap(r.Attributes))*attributeBytes
}

// indexShape indexes a shape, unless a definition that it refers to was lost.
func (t *Table) indexShape(id uint32, before int) {
	for len(t.shapes) <= int(id) {
		t.shapes = append(t.shapes, shapeInfo{})
	}
	shape, info := &t.tables.Shapes[id], &t.shapes[id]
	t.otherBytes += int64(int(id)+1-before)*shapeBytes + int64(cap(shape.Columns))*4
	t.scratch = t.scratch[:0]
	for _, c := range shape.Columns {
		if int(c) >= len(t.columns) || !t.columns[c].known {
			return
		}
		t.scratch = append(t.scratch, field{hash: t.columns[c].hash, place: t.tables.Columns[c].Place})
	}
	info.service, info.known = t.serviceID(shape.Tenant, shape.Service), true
	info.scope, info.kind, info.status = shape.Scope, shape.Kind, shape.Status
	info.name, info.nameInRow = shape.Name, shape.NameInRow
	t.addSlots(info, shape.Columns)
	origin := originIDs{service: info.service, scope: shape.Scope}
	head := shapeHead{name: t.hash.text(shape.Name), kind: shape.Kind, status: shape.Status}
	t.byShape.add(t.shapeHash(origin, head, shape.NameInRow, t.scratch), id)
	t.countShape(id, t.scratch)
}

// serviceID finds or adds a service of a tenant.
func (t *Table) serviceID(tenant, name string) uint32 {
	hash := fold(t.hash.text(tenant), t.hash.text(name))
	candidates := t.byService.find(hash)
	for id, ok := candidates.next(); ok; id, ok = candidates.next() {
		if s := &t.services[id]; s.tenant == tenant && s.name == name {
			return id
		}
	}
	id := uint32(len(t.services))
	t.services = append(t.services, service{tenant: tenant, name: name})
	t.byService.add(hash, id)
	t.otherBytes += serviceBytes
	return id
}
