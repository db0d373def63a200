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
)

// Verification is what `verify` found.
type Verification struct {
	Store    string   `json:"store"`
	Segments int      `json:"segments"` // that were read completely
	Spans    int      `json:"spans"`    // of these
	Bytes    int64    `json:"bytes"`
	Logs     int      `json:"logs"`
	LogSpans int      `json:"spans_in_log"`
	Damage   []Damage `json:"damage"`
}

// Damage is one place where a file is not what was written.
type Damage struct {
	File  string `json:"file"`
	Part  string `json:"part"`
	Spans int    `json:"spans"` // that cannot be read; 0: none, or not known
	Error string `json:"error"`
}

// openCounted takes a snapshot through which all that is read is counted.
func openCounted(fsys vfs.FS, name string, keep bool) (*snapshot, *atomic.Int64, error) {
	read := new(atomic.Int64)
	s, err := look(countingFS{fsys, read}, name, keep)
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

// verify reads everything, and fails only with ctx.
func verify(ctx context.Context, s *snapshot, read *atomic.Int64, progressTo io.Writer) (*Verification, error) {
	v := &Verification{Store: s.path, Damage: []Damage{}}
	v.unopened(s)
	v.relations(s)
	p := newProgress(progressTo, "verify", s.bytes(), read.Load, size, time.Now)
	for _, g := range s.segments {
		if _, err := v.segment(ctx, g, p.step); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// unopened notes what was damaged already when the snapshot was taken: segments that cannot be opened, deletions, logs.
func (v *Verification) unopened(s *snapshot) {
	for _, b := range s.broken {
		v.note(b.err, s.dir.Path(b.name), "file")
	}
	for _, m := range s.badMarks {
		v.note(fmt.Errorf("%w; spans that it hid are visible: repeat the deletion", m.Err), m.Path, "deletion")
	}
	for _, l := range s.logs {
		v.log(s, l)
	}
}

// segment verifies a segment, and returns the damage to it.
func (v *Verification) segment(ctx context.Context, g *stored, step func()) (sound bool, err error) {
	before := len(v.Damage)
	seen := map[string]bool{}
	err = g.Verify(ctx, func(part string, err error) {
		step()
		if err != nil && !seen[err.Error()] { // tables that cannot be read make other parts fail with the same error
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

// note adds what an error says.
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
	for _, d := range l.report.Damage {
		what := "it is not what was written"
		if d.Err != nil {
			what = d.Err.Error()
		}
		v.Damage = append(v.Damage, Damage{d.File, fmt.Sprintf("%d bytes at %d", d.Bytes, d.Offset), 0, what})
	}
	if l.report.Lost > 0 || l.unreadable > 0 {
		v.Damage = append(v.Damage, Damage{file, "log", l.unreadable,
			fmt.Sprintf("%d acknowledged requests are lost, %d spans unreadable", l.report.Lost, l.unreadable)})
	}
}

// relations checks that names, and what segments say of each other, agree. Overlapping ranges alone are no mistake: a segment that was set
// aside when its neighbours were merged lies between them when it is put back.
func (v *Verification) relations(s *snapshot) {
	wrong := func(g *stored, format string, args ...any) {
		v.Damage = append(v.Damage, Damage{g.Name(), "info", 0, fmt.Sprintf(format, args...)})
	}
	for i, g := range s.segments {
		n, info := g.name, &g.info
		if n.Level != info.Level || n.First != info.FirstEpoch || n.Last != info.LastEpoch {
			wrong(g, "the name says level %d, logs %016x to %016x, the file level %d, logs %016x to %016x", n.Level, n.First, n.Last,
				info.Level, info.FirstEpoch, info.LastEpoch)
		}
		for _, text := range info.Replaces {
			if o, ok := directory.ParseSegment(text); !ok || o.Level >= n.Level || o.First < n.First || o.Last > n.Last {
				wrong(g, "it cannot replace %q", text)
			}
		}
		if i > 0 {
			if b := s.segments[i-1].name; b.Level == 0 && n.Level == 0 && b.First == n.First {
				wrong(g, "%s holds the same log", b)
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
	fmt.Fprintf(out, "%s: %d spans in %d segments (%s) and %d in %d logs were read; ", v.Store, v.Spans, v.Segments, size(v.Bytes), v.LogSpans, v.Logs)
	if len(v.Damage) == 0 {
		fmt.Fprintln(out, "all is sound")
		return
	}
	fmt.Fprintf(out, "%d places are damaged, %d spans are known to be unreadable\n", len(v.Damage), v.lost())
}
