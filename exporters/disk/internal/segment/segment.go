package segment

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// Segment is an open segment file. It is safe for concurrent use. It must be closed after all its
// blocks.
//
// The tables, the list of blocks, the zones, the lists of names, the series, and the directory of
// the trace index are read when first needed and kept in memory; see Memory. The tables may be
// large: the list of blocks and the names are read without them. Blocks and the pages of filters
// and of the trace index are read from the file each time; the page cache of the operating system
// caches them.
type Segment struct {
	file vfs.File
	name string
	size int64
	rest int64 // bytes after the trailer, which do not belong to the segment
	info Info
	dir  *directory

	cache *Cache
	used  atomic.Int64 // time of the last use, in uses of the cache

	essentials cached[essentials]
	blocks     cached[blockList]
	zones      cached[zones]
	pages      cached[pages]
	catalog    cached[catalog]
	series     cached[series]

	scratch      *scratch
	lastProbe    atomic.Pointer[filterProbe]
	lastZonePage atomic.Pointer[zonePageData]
}

var _ source.Source = (*Segment)(nil)

// scratch holds memory for reading blocks. The segments of a cache share it, because a search
// visits all of them.
type scratch struct {
	pool     block.Pool
	buffers  sync.Pool // of *[]byte
	decoders sync.Pool // of *decompressor
}

// essentials are the parts that are needed to read any block.
type essentials struct {
	*layout
	*blockList
	keys   map[string][]*words // string columns of attributes, by key
	memory int64
}

// pages is the directory of the trace index.
type pages struct{ list []indexPage }

// Open opens a segment. It reads the trailer, the directory of sections and the info at the end of
// the file, or before trailing data; see [Segment.Trailing]. If one of these is damaged, the error
// is a *source.DamageError and the file is unusable. The error for a later format version matches
// [ErrNewer].
func Open(fsys vfs.FS, path string) (*Segment, error) { return OpenCached(fsys, path, nil) }

// OpenCached is like Open for a segment that shares a memory limit with other segments. A nil cache
// means no limit.
func OpenCached(fsys vfs.FS, path string, cache *Cache) (*Segment, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening segment: %w", err)
	}
	s := &Segment{file: f, name: path, cache: cache, scratch: cache.sharedScratch()}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

func (s *Segment) open() error {
	var err error
	if s.size, err = s.file.Size(); err != nil {
		return fmt.Errorf("opening segment: %w", err)
	}
	t, err := s.findTrailer()
	if errors.Is(err, ErrNewer) {
		return fmt.Errorf("opening segment %s: %w", s.name, err)
	}
	if err != nil {
		return s.damage("trailer", err)
	}
	if s.dir, err = s.readDirectory(t); err != nil {
		return s.damage("directory", err)
	}
	raw, err := s.section(kindInfo, maxInfo)
	if err != nil {
		return err
	}
	if s.info, err = readInfo(raw); err != nil {
		return s.damage(kindInfo.String(), err)
	}
	s.info.Size, s.info.NameBytes = s.size, s.nameBytes()
	return nil
}

func (s *Segment) readDirectory(t trailer) (*directory, error) {
	b := make([]byte, t.length)
	if err := s.readAt(b, t.offset); err != nil {
		return nil, err
	}
	if checksum(b) != t.crc {
		return nil, errChecksum
	}
	return readDirectory(b, t.offset)
}

// readAt fills b from the given offset of the file.
func (s *Segment) readAt(b []byte, offset int64) error {
	if n, err := s.file.ReadAt(b, offset); n < len(b) {
		return fmt.Errorf("reading %d bytes at offset %d: %w", len(b), offset, err)
	}
	return nil
}

// damage returns an error that counts all rows of the segment as unreadable. For parts whose damage
// costs no spans, callers apply withoutRows.
func (s *Segment) damage(part string, err error) error {
	return &source.DamageError{File: s.name, Part: part, Rows: s.info.Rows, Err: err}
}

// section reads and checks a section of at most limit bytes.
func (s *Segment) section(k kind, limit int64) ([]byte, error) {
	e := &s.dir[k]
	if e.kind == 0 {
		return nil, s.damage(k.String(), errors.New("section missing"))
	}
	if max(e.length, e.raw) > limit {
		return nil, s.damage(k.String(), fmt.Errorf("section of %d bytes exceeds the limit of %d", max(e.length, e.raw), limit))
	}
	b := make([]byte, e.length)
	if err := s.readAt(b, e.offset); err != nil {
		return nil, s.damage(k.String(), err)
	}
	if checksum(b) != e.crc {
		return nil, s.damage(k.String(), errChecksum)
	}
	raw, err := unpack(b, e)
	if err != nil {
		return nil, s.damage(k.String(), err)
	}
	return raw, nil
}

// Info returns the description of the segment.
func (s *Segment) Info() Info { return s.info }

// Name returns the name of the file.
func (s *Segment) Name() string { return s.name }

// Close closes the file. All blocks must be closed first, and no method may be called afterwards.
func (s *Segment) Close() error {
	s.cache.remove(s)
	s.Drop()
	s.pages.value.Store(nil)
	return s.file.Close()
}

// Memory returns the approximate number of bytes that the segment currently keeps in memory.
func (s *Segment) Memory() int64 {
	const own = 1 << 10
	n := own + s.droppable()
	if p := s.pages.value.Load(); p != nil {
		n += int64(cap(p.list)) * indexPageMemory
	}
	return n
}

// droppable returns the approximate number of bytes that Drop releases.
func (s *Segment) droppable() int64 {
	n := int64(0)
	if b := s.essentials.value.Load(); b != nil {
		n += b.memory
	}
	if l := s.blocks.value.Load(); l != nil {
		n += l.memory()
	}
	if z := s.zones.value.Load(); z != nil {
		n += z.memory()
	}
	if v := s.series.value.Load(); v != nil {
		n += v.memory
	}
	if c := s.catalog.value.Load(); c != nil {
		n += c.Memory()
	}
	return n
}

// Drop releases the parts of the file that are in memory, except for the directory of the trace
// index, which every trace lookup needs. Concurrent calls are not affected; later calls reread the
// parts.
func (s *Segment) Drop() {
	s.essentials.value.Store(nil)
	s.blocks.value.Store(nil)
	s.zones.value.Store(nil)
	s.series.value.Store(nil)
	s.catalog.value.Store(nil)
	s.lastProbe.Store(nil)
	s.lastZonePage.Store(nil)
}

// series is the decoded series section. It is cached, because dashboards request rates every few
// seconds.
type series struct {
	stats  *stats.SeriesStats
	memory int64
}

// Series implements source.Statistics.
func (s *Segment) Series() (*stats.SeriesStats, error) {
	s.cache.touch(s)
	v, err := s.series.get(func() (*series, error) {
		raw, err := s.section(kindSeries, maxSection)
		if err != nil {
			return nil, withoutRows(err)
		}
		decoded, err := stats.DecodeSeries(raw)
		if err != nil {
			return nil, withoutRows(s.damage(kindSeries.String(), err))
		}
		return &series{decoded, int64(len(raw)) + decoded.Memory()}, nil
	}, s.loaded)
	if err != nil {
		return nil, err
	}
	return v.stats, nil
}

// Edges reads the calls between services within the segment.
func (s *Segment) Edges() (*stats.EdgeStats, error) {
	return readStats(s, kindEdges, stats.DecodeEdges)
}

// Orphans reads the spans whose parent is not in the segment.
func (s *Segment) Orphans() (*stats.OrphanStats, error) {
	return readStats(s, kindOrphans, stats.DecodeOrphans)
}

func readStats[T any](s *Segment, k kind, decode func([]byte) (T, error)) (T, error) {
	var v T
	raw, err := s.section(k, maxSection)
	if err != nil {
		return v, withoutRows(err)
	}
	if v, err = decode(raw); err != nil {
		return v, withoutRows(s.damage(k.String(), err))
	}
	return v, nil
}

// withoutRows sets the number of unreadable rows of a damage error to 0.
func withoutRows(err error) error {
	var d *source.DamageError
	if errors.As(err, &d) {
		d.Rows = 0
	}
	return err
}
