package segment

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// The catalog lists the services of all tenants and their operations, so that names are available
// without the tables. A file has no catalog if it would exceed maxCatalog or maxCatalogNames, or if
// the file was written before catalogs existed.
//
//	catalog    services, service*                           sorted by tenant, then name
//	service    tenant, name, flags, operations, operation*  flags: 1 if some names are in rows
//	operation  name, kind                                   sorted by name, then kind
//
// All numbers are varints, kind as zigzag. A text is a varint length and its bytes.
const namesInRows = 1

var _ source.Catalog = (*Segment)(nil)

// catalog is a decoded catalog.
type catalog struct {
	services []source.Service
	names    int   // number of services and operations
	memory   int64 // in bytes
}

func newCatalog(services []source.Service) *catalog {
	c := &catalog{services: services, names: len(services)}
	c.memory = int64(len(services)) * int64(unsafe.Sizeof(source.Service{}))
	for i := range services {
		s := &services[i]
		c.names += len(s.Operations)
		c.memory += int64(len(s.Tenant)+len(s.Name)) + int64(len(s.Operations))*int64(unsafe.Sizeof(source.Operation{}))
		for _, o := range s.Operations {
			c.memory += int64(len(o.Name))
		}
	}
	return c
}

// fits reports whether a catalog is small enough to be stored in a file and kept in memory.
func (c *catalog) fits() bool { return c.names <= maxCatalogNames && c.memory <= maxCatalog }

// catalogOf builds the catalog of tables. It does not share memory with them.
func catalogOf(t *rows.Tables) *catalog {
	services, _ := source.ServicesOf(t)
	return newCatalog(services)
}

func (c *catalog) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(c.services)))
	for i := range c.services {
		s := &c.services[i]
		dst = appendText(appendText(dst, s.Tenant), s.Name)
		flags := uint64(0)
		if s.NamesInRows {
			flags = namesInRows
		}
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, flags), uint64(len(s.Operations)))
		for _, o := range s.Operations {
			dst = binary.AppendVarint(appendText(dst, o.Name), int64(o.Kind))
		}
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// readCatalog decodes the catalog section. The result retains b.
func readCatalog(b []byte) (*catalog, error) {
	const minServiceSize, minOperationSize = 4, 2 // bytes
	r := reader{b: b}
	left := maxCatalogNames
	services := make([]source.Service, r.count(minServiceSize, &left))
	for i := range services {
		s := &services[i]
		s.Tenant, s.Name = r.text(), r.text()
		s.NamesInRows = r.uvarint()&namesInRows != 0
		if n := r.count(minOperationSize, &left); n > 0 {
			s.Operations = make([]source.Operation, n)
		}
		for j := range s.Operations {
			s.Operations[j] = source.Operation{Name: r.text(), Kind: int32(r.varint())}
			if j > 0 && s.Operations[j-1].Compare(s.Operations[j]) >= 0 {
				r.fail(errOrder)
			}
		}
		if i > 0 && services[i-1].Compare(*s) >= 0 {
			r.fail(errOrder)
		}
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return newCatalog(services), nil
}

var errOrder = errors.New("names are not sorted")

// count decodes the number of items that follow, each at least size bytes long. The number must not
// exceed *left and is subtracted from it.
func (r *reader) count(size int, left *int) int {
	n := r.uvarint()
	if n > uint64(min(len(r.b)/size, *left)) {
		r.fail(errors.New("count exceeds the data"))
		return 0
	}
	*left -= int(n)
	return int(n)
}

// text decodes a text, which aliases the section.
func (r *reader) text() string {
	b := r.take(r.int())
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// catalog writes the catalog of tables if it is small enough.
func (s *sectionWriter) catalog(t *rows.Tables) {
	if c := catalogOf(t); c.fits() {
		s.packed(kindCatalog, c.append(nil))
	}
}

// Services implements source.Catalog. For a file without a catalog it builds one from the tables.
func (s *Segment) Services() ([]source.Service, error) {
	c, err := s.catalog.get(s.loadCatalog, s.limitCatalog)
	if err != nil {
		return nil, withoutRows(err)
	}
	return c.services, nil
}

func (s *Segment) loadCatalog() (*catalog, error) {
	if s.dir[kindCatalog].kind == 0 {
		t, err := s.Tables()
		if err != nil {
			return nil, err
		}
		return catalogOf(t), nil
	}
	raw, err := s.section(kindCatalog, maxCatalog)
	if err != nil {
		return nil, err
	}
	c, err := readCatalog(raw)
	if err != nil {
		return nil, s.damage(kindCatalog.String(), err)
	}
	return c, nil
}

// limitCatalog drops the catalog from memory if it is too large to be kept.
func (s *Segment) limitCatalog() {
	if c := s.catalog.value.Load(); !c.fits() || !s.cache.pin(s, c.memory) {
		s.catalog.value.Store(nil)
	}
}
