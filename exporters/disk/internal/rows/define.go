package rows

import (
	"encoding/binary"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Define adds the definition in an item to the tables. A definition assigns an id to a column,
// word, scope, resource, shape or service. Define returns false if the item is not a definition. It
// ignores a definition whose id is already known. If ids are missing between the last known id and
// the new one, their definitions count as lost. The tables retain the payload.
func (t *Tables) Define(tag Tag, payload []byte) (bool, error) {
	r := reader{b: payload}
	switch tag {
	case TagColumn:
		t.defineColumn(&r)
	case TagWord:
		t.defineWord(&r)
	case TagScope:
		t.defineScope(&r)
	case TagResource:
		t.defineResource(&r)
	case TagShape:
		t.defineShape(&r)
	case TagService:
		t.defineService(&r)
	default:
		return false, nil
	}
	return true, r.err
}

func (t *Tables) defineService(r *reader) {
	id := r.id()
	s := Service{Tenant: t.interner.text(r.text())}
	s.Name = t.interner.text(r.rest())
	if !t.fits(r, id, len(t.Services)) {
		return
	}
	for lost := len(t.Services); lost < int(id); lost++ {
		t.lostDefinitions().services[uint32(lost)] = true
		t.Services = append(t.Services, Service{})
	}
	t.Services = append(t.Services, s)
}

func (t *Tables) defineColumn(r *reader) {
	id := r.id()
	c := Column{Place: Place(r.byte()), Kind: otlpdata.ValueKind(r.byte())}
	c.Key = t.interner.text(r.rest())
	if c.Place >= numPlaces || c.Kind > otlpdata.ValueMap {
		r.fail("column with an unknown place or kind")
	}
	if !t.fits(r, id, len(t.Columns)) {
		return
	}
	for lost := len(t.Columns); lost < int(id); lost++ {
		t.lostDefinitions().columns[uint32(lost)] = true
		t.Columns, t.Words = append(t.Columns, Column{}), append(t.Words, nil)
	}
	t.Columns, t.Words = append(t.Columns, c), append(t.Words, nil)
}

func (t *Tables) defineWord(r *reader) {
	column, id := r.id(), r.id()
	word := r.rest()
	if r.err == nil && int(column) >= len(t.Columns) {
		if !t.fits(r, column, len(t.Columns)) {
			return
		}
		for lost := len(t.Columns); lost <= int(column); lost++ {
			t.lostDefinitions().columns[uint32(lost)] = true
			t.Columns, t.Words = append(t.Columns, Column{}), append(t.Words, nil)
		}
	}
	if r.err != nil || !t.fits(r, id, len(t.Words[column])) {
		return
	}
	for lost := len(t.Words[column]); lost < int(id); lost++ {
		t.lostDefinitions().words[[2]uint32{column, uint32(lost)}] = true
		t.Words[column] = append(t.Words[column], "")
	}
	t.Words[column] = append(t.Words[column], t.interner.copy(word))
}

func (t *Tables) defineScope(r *reader) {
	id, url := r.id(), t.interner.text(r.text())
	raw := t.interner.bytes(r.b)
	if !t.fits(r, id, len(t.Scopes)) {
		return
	}
	s, err := otlpdata.ReadScope(raw, url)
	if err != nil {
		r.fail("scope: " + err.Error())
		return
	}
	for lost := len(t.Scopes); lost < int(id); lost++ {
		t.lostDefinitions().scopes[uint32(lost)] = true
		t.Scopes = append(t.Scopes, otlpdata.Scope{})
	}
	t.Scopes = append(t.Scopes, s)
}

func (t *Tables) defineResource(r *reader) {
	id, tenant, url := r.id(), t.interner.text(r.text()), t.interner.text(r.text())
	raw := t.interner.bytes(r.b)
	if !t.fits(r, id, len(t.Resources)) {
		return
	}
	res, err := otlpdata.ReadResource(raw, url)
	if err != nil {
		r.fail("resource: " + err.Error())
		return
	}
	for lost := len(t.Resources); lost < int(id); lost++ {
		t.lostDefinitions().resources[uint32(lost)] = true
		t.Resources = append(t.Resources, Resource{})
	}
	t.Resources = append(t.Resources, Resource{Tenant: tenant, Resource: res})
}

func (t *Tables) defineShape(r *reader) {
	id := r.id()
	service := r.id()
	s := Shape{Scope: r.id(), Kind: int32(r.zigzag()), Status: int32(r.zigzag())}
	s.NameInRow = r.byte()&flagNameInRow != 0
	s.Name = t.interner.text(r.text())
	s.lost = t.lostScope(s.Scope) || t.lostService(service)
	t.readColumns(r, &s)
	if !t.fits(r, id, len(t.Shapes)) {
		return
	}
	for lost := len(t.Shapes); lost < int(id); lost++ {
		t.lostDefinitions()
		t.Shapes = append(t.Shapes, Shape{lost: true})
	}
	if s.lost {
		t.lostDefinitions()
		s = Shape{lost: true} // drop references to lost definitions
	}
	if !s.lost {
		s.Tenant, s.Service = t.Services[service].Tenant, t.Services[service].Name
	}
	t.Shapes = append(t.Shapes, s)
}

// readColumns decodes the columns of a shape, which take the rest of the payload.
func (t *Tables) readColumns(r *reader, s *Shape) {
	encoded := r.b
	if s.Columns = t.interner.list(encoded); s.Columns != nil {
		r.b = nil
		return
	}
	s.Columns = make([]uint32, 0, len(encoded))
	lost := false
	for len(r.b) > 0 && r.err == nil {
		c := r.id()
		s.Columns = append(s.Columns, c)
		lost = lost || t.lostColumn(c)
	}
	if s.lost = s.lost || lost; !lost && r.err == nil && len(s.Columns) > 0 {
		t.interner.keep(encoded, s.Columns)
	}
}

func (t *Tables) lostService(id uint32) bool {
	return int(id) >= len(t.Services) || t.lost != nil && t.lost.services[id]
}

// fits reports whether the id of a definition is new. It counts skipped ids as lost.
func (t *Tables) fits(r *reader, id uint32, have int) bool {
	if r.err != nil || int(id) < have {
		return false
	}
	gap := int(id) - have
	if gap == 0 {
		return true
	}
	l := t.lostDefinitions()
	if l.gaps+gap > maxLost {
		r.fail("too many records refer to missing definitions")
		return false
	}
	l.gaps += gap
	return true
}

func (t *Tables) lostScope(id uint32) bool {
	return int(id) >= len(t.Scopes) || t.lost != nil && t.lost.scopes[id]
}

func (t *Tables) lostColumn(id uint32) bool {
	return int(id) >= len(t.Columns) || t.lost != nil && t.lost.columns[id]
}

// reader decodes the parts of a payload. After the first error it returns zero values.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = corrupt(what)
	}
	r.b = nil
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("truncated number")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) zigzag() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (r *reader) id() uint32 {
	v := r.uvarint()
	if v >= maxID {
		r.fail("id out of range")
		return 0
	}
	return uint32(v)
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail("truncated definition")
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) text() string {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.fail("truncated text")
		return ""
	}
	s := text(r.b[:n])
	r.b = r.b[n:]
	return s
}

// rest returns the remaining bytes.
func (r *reader) rest() string {
	s := text(r.b)
	r.b = nil
	return s
}
