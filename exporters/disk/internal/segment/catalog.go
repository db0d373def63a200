package segment

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/namelist"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
)

var _ source.Catalog = (*Segment)(nil)

// names writes the lists of services and operations (see package namelist), whose pages are read
// one by one. It takes them from the series. A file has no lists if they are incomplete or larger
// than maxNames. names returns their size in bytes.
func (s *sectionWriter) names(c *stats.Collector) int64 {
	var b namelist.Builder
	var last *stats.Series
	missing := false // operations of the last service
	endService := func() {
		if last != nil {
			b.Service(last.Tenant, last.Service, missing)
		}
	}
	c.EachOperation(func(x *stats.Series, others bool) {
		if last == nil || x.Tenant != last.Tenant || x.Service != last.Service {
			endService()
			missing = false
		}
		last = x
		missing = missing || others || !b.Operation(x.Tenant, x.Service, x.Operation, x.Kind)
	})
	endService()
	services, operations, directory := b.Finish()
	size := int64(len(services) + len(operations))
	if b.Unlisted() || !c.HasAllSeries() || size > maxNames {
		return size
	}
	s.plain(kindServices, services)
	s.plain(kindOperations, operations)
	s.packed(kindNameDirectory, directory)
	return size
}

// catalog is the lists of names, or the directory of their pages if these are in the file.
type catalog struct{ *namelist.Lists }

// EachService implements source.Catalog.
func (s *Segment) EachService(tenant, from string, visit func(name []byte, missing bool) bool) error {
	return s.readNames(kindServices, func(l *namelist.Lists, read namelist.Read) error {
		return l.EachService(read, tenant, from, visit)
	})
}

// EachOperation implements source.Catalog.
func (s *Segment) EachOperation(tenant, service, from string, visit func(name []byte, kind string) bool) error {
	return s.readNames(kindOperations, func(l *namelist.Lists, read namelist.Read) error {
		return l.EachOperation(read, tenant, service, from, visit)
	})
}

// MayHaveService implements source.Services. It reads one page of names.
func (s *Segment) MayHaveService(tenant, service string) bool {
	if s.dir[kindNameDirectory].kind == 0 {
		return true
	}
	found := false
	err := s.EachService(tenant, service, func(name []byte, _ bool) bool {
		found = string(name) == service
		return false
	})
	return found || err != nil
}

// readNames calls f with the lists and a function that reads from their pages.
func (s *Segment) readNames(pages kind, f func(*namelist.Lists, namelist.Read) error) error {
	s.cache.touch(s)
	c, err := s.catalog.get(s.loadCatalog, s.loaded)
	if err != nil {
		return withoutRows(err)
	}
	var buf *[]byte
	defer func() {
		if buf != nil {
			s.release(buf)
		}
	}()
	err = f(c.Lists, func(offset int64, length int) ([]byte, error) {
		if buf == nil || cap(*buf) < length {
			buf = s.buffer(length)
		}
		*buf = (*buf)[:length]
		return *buf, s.readAt(*buf, s.dir[pages].offset+offset)
	})
	if err != nil {
		return withoutRows(s.damage(pages.String(), err))
	}
	return nil
}

// loadCatalog reads the directory of the lists. For a file without lists it builds them from the
// tables.
func (s *Segment) loadCatalog() (*catalog, error) {
	if s.dir[kindNameDirectory].kind != 0 {
		raw, err := s.section(kindNameDirectory, maxSection)
		if err != nil {
			return nil, err
		}
		l, err := namelist.Open(raw, s.dir[kindServices].length, s.dir[kindOperations].length)
		if err != nil {
			return nil, s.damage(kindNameDirectory.String(), err)
		}
		return &catalog{l}, nil
	}
	t, err := s.Tables()
	if err != nil {
		return nil, err
	}
	return &catalog{namelist.Of(source.ServicesOf(t))}, nil
}

// nameBytes returns Info.NameBytes.
func (s *Segment) nameBytes() int64 {
	const seriesShare = 4 // a name takes about 1/seriesShare of its series
	if s.dir[kindNameDirectory].kind == 0 {
		return s.dir[kindSeries].raw / seriesShare
	}
	return s.dir[kindServices].length + s.dir[kindOperations].length
}
