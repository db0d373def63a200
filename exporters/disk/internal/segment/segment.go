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

// Segment is an open segment file. It is safe for concurrent use. Who opened it closes it when nobody uses it or one of its blocks.
//
// The tables, and lists of the blocks and of the pages of the trace index, are read when they are first needed and kept in memory; see
// Memory. Blocks, filters and the trace index are read from the file each time, a page or a block at once: the page cache is their cache.
type Segment struct {
	file vfs.File
	name string
	size int64
	info Info
	dir  *directory

	cache *Cache
	used  atomic.Int64 // when it was used last, by cache

	body    cached[body]
	zones   cached[zones]
	pages   cached[pages]
	catalog cached[catalog]
	series  cached[series]

	*scratch
	probed       atomic.Pointer[probe]
	zonePageOpen atomic.Pointer[openZonePage]
}

var _ source.Source = (*Segment)(nil)

// scratch is memory that reading blocks takes. The segments of a cache share it: a search goes through all of them.
type scratch struct {
	pool     block.Pool
	buffers  sync.Pool // of *[]byte
	decoders sync.Pool // of *decompressor
}

// body is what reading any block takes.
type body struct {
	*layout
	*blockList
	keys   map[string][]*words // string columns of attributes by their key
	memory int64
}

type pages struct{ list []indexPage }

// Open opens a segment. It reads the end of the file: the trailer, the directory of sections and the info. If one of these is damaged the
// file is of no use, and the error a *source.DamageError; that of a file of a later format matches [ErrNewer].
func Open(fsys vfs.FS, path string) (*Segment, error) { return OpenCached(fsys, path, nil) }

// OpenCached is Open for a segment that shares a bound of memory with others; nil: it has none.
func OpenCached(fsys vfs.FS, path string, cache *Cache) (*Segment, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	s := &Segment{file: f, name: path, cache: cache, scratch: cache.scratchOf()}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

func (s *Segment) open() error {
	var err error
	if s.size, err = s.file.Size(); err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	var b [trailerSize]byte
	if s.size < headerSize+trailerSize {
		return s.damage("trailer", errShort)
	}
	if err := s.readAt(b[:], s.size-trailerSize); err != nil {
		return s.damage("trailer", err)
	}
	t, err := readTrailer(b[:], s.size)
	if errors.Is(err, ErrNewer) {
		return fmt.Errorf("open segment %s: %w", s.name, err)
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
	s.info.Size = s.size
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

// readAt fills b from an offset of the file.
func (s *Segment) readAt(b []byte, offset int64) error {
	if n, err := s.file.ReadAt(b, offset); n < len(b) {
		return fmt.Errorf("read %d bytes at %d: %w", len(b), offset, err)
	}
	return nil
}

// damage returns the error for a part without which no span can be read, or for one whose loss costs none.
func (s *Segment) damage(part string, err error) error {
	return &source.DamageError{File: s.name, Part: part, Rows: s.info.Rows, Err: err}
}

// section reads and checks a section of at most limit bytes.
func (s *Segment) section(k kind, limit int64) ([]byte, error) {
	e := &s.dir[k]
	if e.kind == 0 {
		return nil, s.damage(k.String(), errors.New("it is missing"))
	}
	if max(e.length, e.raw) > limit {
		return nil, s.damage(k.String(), fmt.Errorf("it has %d bytes", max(e.length, e.raw)))
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

// Info describes the segment.
func (s *Segment) Info() Info { return s.info }

// Name returns the name of the file.
func (s *Segment) Name() string { return s.name }

// Close closes the file. Blocks must be closed before, and no method called after.
func (s *Segment) Close() error {
	s.cache.forget(s)
	s.Drop()
	s.pages.value.Store(nil)
	s.catalog.value.Store(nil)
	return s.file.Close()
}

// Memory estimates the bytes that the segment keeps in memory now.
func (s *Segment) Memory() int64 {
	const own = 1 << 10
	n := own + s.droppable()
	if p := s.pages.value.Load(); p != nil {
		n += int64(cap(p.list)) * indexPageMemory
	}
	if c := s.catalog.value.Load(); c != nil {
		n += c.memory
	}
	return n
}

// droppable estimates the bytes that Drop forgets.
func (s *Segment) droppable() int64 {
	n := int64(0)
	if b := s.body.value.Load(); b != nil {
		n += b.memory
	}
	if z := s.zones.value.Load(); z != nil {
		n += z.memory()
	}
	if v := s.series.value.Load(); v != nil {
		n += v.memory
	}
	return n
}

// Drop forgets what was read, but for the list of the pages of the trace index, which is needed for every trace that is looked for, whether
// it is here or not, and the catalog: they are small. Calls that are under way are not disturbed, and later ones read the rest again.
func (s *Segment) Drop() {
	s.body.value.Store(nil)
	s.zones.value.Store(nil)
	s.series.value.Store(nil)
	s.probed.Store(nil)
	s.zonePageOpen.Store(nil)
}

// Edges reads the calls between services among the segment's spans.
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

// withoutRows says of a damage that no span is lost by it.
func withoutRows(err error) error {
	var d *source.DamageError
	if errors.As(err, &d) {
		d.Rows = 0
	}
	return err
}
