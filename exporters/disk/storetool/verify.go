package storetool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"sync/atomic"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// Verification is the result of `verify`.
type Verification struct {
	Store    string   `json:"store"`
	Segments int      `json:"segments"` // read completely
	Spans    int      `json:"spans"`    // in these segments
	Bytes    int64    `json:"bytes"`
	Logs     int      `json:"logs"`
	LogSpans int      `json:"spans_in_log"`
	Damage   []Damage `json:"damage"`
}

// Damage is one damaged place in a file.
type Damage struct {
	File  string `json:"file"`
	Part  string `json:"part"`
	Spans int    `json:"spans"` // unreadable spans; 0 means none or unknown
	Error string `json:"error"`
}

// openCounted takes a snapshot that counts the bytes that are read.
func openCounted(fsys vfs.FS, name string, keepRows bool) (*snapshot, *atomic.Int64, error) {
	read := new(atomic.Int64)
	s, err := openSnapshot(countingFS{fsys, read}, name, keepRows)
	if err == nil {
		read.Store(0)
	}
	return s, read, err
}

// bytes returns the size of all open segments.
func (s *snapshot) bytes() int64 {
	n := int64(0)
	for _, g := range s.segments {
		n += g.info.Size
	}
	return n
}

// verify reads and checks everything. It fails only if ctx ends; damage is in the result.
func verify(ctx context.Context, s *snapshot, read *atomic.Int64, progressTo io.Writer) (*Verification, error) {
	v := &Verification{Store: s.path, Damage: []Damage{}}
	v.unopened(s)
	v.restorable(s)
	v.relations(s)
	p := newProgress(progressTo, "verify", s.bytes(), read.Load, formatSize, time.Now)
	for _, g := range s.segments {
		if _, err := v.segment(ctx, g, p.step); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// unopened records the damage that taking the snapshot found: in segments that cannot be opened,
// tombstones and logs.
func (v *Verification) unopened(s *snapshot) {
	for _, b := range s.broken {
		v.note(b.err, s.dir.Path(b.name), "file")
	}
	for _, m := range s.damagedDeletions {
		if !m.Restored {
			v.note(fmt.Errorf("%w; the spans it deleted are visible again; repeat the deletion", m.Err), m.Paths[0], "deletion")
		}
	}
	for _, l := range s.logs {
		v.log(s, l)
	}
	for _, m := range s.missing {
		v.Damage = append(v.Damage, Damage{path.Join(s.dir.Log(), fmt.Sprintf("%016x", m.Epoch)), "log", int(m.Weight),
			fmt.Sprintf("files of the log are gone; at least %d acknowledged spans are lost", m.Weight)})
	}
	for _, m := range s.gone {
		v.Damage = append(v.Damage, Damage{s.dir.Path(m.Segment), "file", m.Spans,
			fmt.Sprintf("file of the segment is gone; its %d acknowledged spans are lost", m.Spans)})
	}
	if s.segmentListDamage != nil {
		v.note(fmt.Errorf("%w; missing segments are unknown; the server rewrites it", s.segmentListDamage), s.dir.ListFile(), "list")
	}
	if s.listDamage != nil {
		v.note(fmt.Errorf("%w; missing logs are unknown; the server rewrites it", s.listDamage), wal.ListFile(s.dir.Log()), "list")
	}
}

// restorable records damage without loss: to the version of the store, and to files of deletions
// that have a sound copy.
func (v *Verification) restorable(s *snapshot) {
	if d := s.dir.FormatDamage(); d != nil {
		v.note(fmt.Errorf("%w; the server or repair rewrites it", d.Err), d.File, "version")
	}
	for _, m := range s.damagedDeletions {
		if m.Restored {
			v.note(fmt.Errorf("%w; its copy is sound; the server or repair restores it", m.Err), m.Paths[0], "deletion")
		}
	}
}

// segment verifies a segment and reports whether it has no damage. step is called for each part.
func (v *Verification) segment(ctx context.Context, g *stored, step func()) (sound bool, err error) {
	before := len(v.Damage)
	seen := map[string]bool{}
	err = g.Verify(ctx, func(part string, err error) {
		step()
		if err != nil && !seen[err.Error()] { // unreadable tables make other parts fail with the same error
			seen[err.Error()] = true
			v.note(err, g.Name(), part)
		}
	})
	if err != nil {
		return false, err
	}
	v.Segments++
	v.Spans += g.info.Rows
	v.Bytes += g.info.Size
	return len(v.Damage) == before, nil
}

// note records the damage that err describes. file and part are used if err does not name them.
func (v *Verification) note(err error, file, part string) {
	d := (*source.DamageError)(nil)
	if errors.As(err, &d) {
		v.Damage = append(v.Damage, Damage{d.File, d.Part, d.Rows, d.Err.Error()})
		return
	}
	v.Damage = append(v.Damage, Damage{File: file, Part: part, Error: err.Error()})
}

func (v *Verification) log(s *snapshot, l *replayed) {
	v.Logs++
	v.LogSpans += l.rows
	if !l.damaged() {
		return
	}
	file := path.Join(s.dir.Log(), fmt.Sprintf("%016x", l.epoch))
	if l.err != nil {
		v.note(l.err, file, "log")
	}
	for _, d := range l.Report.Damage {
		what := "no valid log records"
		switch {
		case d.Err != nil:
			what = d.Err.Error()
		case d.Bytes == 0:
			what = "end of the log is missing"
		}
		v.Damage = append(v.Damage, Damage{d.File, fmt.Sprintf("%d bytes at %d", d.Bytes, d.Offset), 0, what})
	}
	lost, _ := l.Lost(l.rows)
	v.Damage = append(v.Damage, Damage{file, "log", lost, l.Describe(l.rows)})
}

// relations checks that file names match the metadata of the segments, and that the metadata of the
// segments is consistent. Overlapping epoch ranges are allowed: a segment that was in the
// quarantine when its neighbors were merged lies between them after it is moved back.
func (v *Verification) relations(s *snapshot) {
	wrong := func(g *stored, format string, args ...any) {
		v.Damage = append(v.Damage, Damage{g.Name(), "info", 0, fmt.Sprintf(format, args...)})
	}
	for i, g := range s.segments {
		n, info := g.name, &g.info
		if n.Level != info.Level || n.First != info.FirstEpoch || n.Last != info.LastEpoch {
			wrong(g, "name says level %d, logs %016x to %016x; metadata says level %d, logs %016x to %016x",
				n.Level, n.First, n.Last, info.Level, info.FirstEpoch, info.LastEpoch)
		}
		for _, text := range info.Replaces {
			if o, ok := directory.ParseSegment(text); !ok || o.Level >= n.Level || o.First < n.First || o.Last > n.Last {
				wrong(g, "metadata says that this segment replaces %q, which is impossible by their names", text)
			}
		}
		if i > 0 {
			if b := s.segments[i-1].name; b.Level == 0 && n.Level == 0 && b.First == n.First {
				wrong(g, "segment %s holds the same log", b)
			}
		}
	}
}

// lost returns how many spans are known to be unreadable.
func (v *Verification) lost() int {
	n := 0
	for _, d := range v.Damage {
		n += d.Spans
	}
	return n
}

func (v *Verification) writeDamage(out io.Writer) {
	for _, d := range v.Damage {
		fmt.Fprintf(out, "damaged: %s: %s: %s", d.File, d.Part, d.Error)
		if d.Spans > 0 {
			fmt.Fprintf(out, " (%d spans)", d.Spans)
		}
		fmt.Fprintln(out)
	}
}

func (v *Verification) write(out io.Writer) {
	v.writeDamage(out)
	fmt.Fprintf(out, "%s: read %d spans in %d segments (%s) and %d in %d logs; ",
		v.Store, v.Spans, v.Segments, formatSize(v.Bytes), v.LogSpans, v.Logs)
	if len(v.Damage) == 0 {
		fmt.Fprintln(out, "no damage found")
		return
	}
	fmt.Fprintf(out, "found %d damaged places; at least %d spans are unreadable\n", len(v.Damage), v.lost())
}
