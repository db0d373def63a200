package storetool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// Repair is what `repair` did, or with --dry-run would do.
type Repair struct {
	Store  string       `json:"store"`
	DryRun bool         `json:"dry_run"`
	Files  []RepairFile `json:"files"` // those that something is wrong with, and all segments of the quarantine
	Lost   int          `json:"lost_spans"`
}

// RepairFile is a file and what becomes of it.
type RepairFile struct {
	File   string   `json:"file"`
	Action string   `json:"action"`
	New    string   `json:"new,omitempty"` // the segment that has its spans now
	Spans  int      `json:"spans"`         // that are saved
	Lost   int      `json:"lost_spans"`    // as far as it is known
	Damage []Damage `json:"damage"`
}

// What becomes of a file.
const (
	rewritten   = "rewritten without what cannot be read; the file itself is in the quarantine"
	setAside    = "nothing of it can be read: it is in the quarantine"
	putBack     = "was sound and is put back"
	stayedThere = "stays in the quarantine: nothing of it can be read"
	heldTwice   = "stays in the quarantine: another segment has its spans"
)

// repairer repairs one store. Nobody else uses the folder.
type repairer struct {
	fs       vfs.FS
	dir      *directory.Dir
	snapshot *snapshot
	dry      bool
	report   *Repair
	progress *progress // of verifying, in bytes
	read     int64     // bytes of segments that were verified
}

func (t tool) repair(fs *flag.FlagSet) runner {
	dry := fs.Bool("dry-run", false, "Only says what would be done, and takes no lock: the program may run.")
	asJSON := fs.Bool("json", false, "Prints JSON.")
	return func(ctx context.Context, in pipeline.Invocation) error {
		name, err := oneDir(in)
		if err != nil {
			return err
		}
		r, err := repair(ctx, t.fs, name, *dry, in.Stderr)
		if err != nil {
			return err
		}
		if *asJSON {
			return writeJSON(in.Stdout, r)
		}
		r.write(in.Stdout)
		return nil
	}
}

func repair(ctx context.Context, fsys vfs.FS, name string, dry bool, progressTo io.Writer) (_ *Repair, err error) {
	folder, err := locate(fsys, name)
	if err != nil {
		return nil, err
	}
	open := directory.Open
	if dry {
		open = directory.OpenReadOnly
	}
	dir, err := open(fsys, folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	s, err := take(fsys, dir, folder, false)
	if err != nil {
		return nil, err
	}
	defer s.close()
	r := &repairer{fs: fsys, dir: dir, snapshot: s, dry: dry, report: &Repair{Store: folder, DryRun: dry, Files: []RepairFile{}}}
	r.progress = newProgress(progressTo, "repair", s.bytes(), func() int64 { return r.read }, size, time.Now)
	return r.report, r.run(ctx)
}

func (r *repairer) run(ctx context.Context) error {
	for _, b := range r.snapshot.broken {
		if !isDamage(b.err) {
			return b.err // of a newer version, or not readable for the moment
		}
		f := RepairFile{File: r.dir.Path(b.name), Action: setAside, Damage: damageOf(b.err)}
		if err := r.quarantine(f.File); err != nil {
			return err
		}
		r.report.Files = append(r.report.Files, f)
	}
	for _, g := range slices.Clone(r.snapshot.segments) {
		if err := r.stored(ctx, g); err != nil {
			return err
		}
	}
	return r.setAside(ctx)
}

func isDamage(err error) bool {
	d := (*source.DamageError)(nil)
	return errors.As(err, &d)
}

func damageOf(err error) []Damage {
	v := Verification{}
	v.note(err, "", "")
	return v.Damage
}

// examine verifies a file and returns what is wrong with it.
func (r *repairer) examine(ctx context.Context, g *stored) ([]Damage, error) {
	v := Verification{Damage: []Damage{}}
	_, err := v.segment(ctx, g, r.progress.step)
	r.read += g.info.Size
	return v.Damage, err
}

// stored repairs a segment of the store.
func (r *repairer) stored(ctx context.Context, g *stored) error {
	damage, err := r.examine(ctx, g)
	if err != nil || len(damage) == 0 {
		return err
	}
	f := RepairFile{File: g.Name(), Action: rewritten, Damage: damage}
	if err := r.rewrite(ctx, g, &f); err != nil {
		return err
	}
	if f.New == "" {
		f.Action = setAside
	}
	if err := r.quarantine(g.Name()); err != nil {
		return err
	}
	r.add(f)
	return nil
}

func (r *repairer) add(f RepairFile) {
	r.report.Files = append(r.report.Files, f)
	r.report.Lost += f.Lost
}

func (r *repairer) quarantine(name string) error {
	if r.dry {
		return nil
	}
	_, err := r.dir.Quarantine(name)
	return err
}

// rewrite makes a segment of what can be read of another one, and notes its name in f if there is anything.
func (r *repairer) rewrite(ctx context.Context, g *stored, f *RepairFile) error {
	if _, err := g.Tables(); err != nil {
		f.Lost = g.info.Rows
		return nil
	}
	if r.dry {
		lost := Verification{Damage: f.Damage}
		if f.Lost = min(lost.lost(), g.info.Rows); f.Lost < g.info.Rows {
			f.New, f.Spans = "a new segment", g.info.Rows-f.Lost
		}
		return nil
	}
	name := directory.Segment{Day: g.name.Day, Level: g.name.Level + 1, First: g.name.First, Last: g.name.Last}
	meta := g.info.Meta
	meta.Level = name.Level
	meta.Replaces = append([]string{g.name.String()}, meta.Replaces...)
	if err := r.dir.CreateDay(name); err != nil {
		return err
	}
	info, err := segment.Merge(r.fs, r.dir.StagingPath(name), []source.Source{g}, meta, segment.MergeOptions{
		Pace:     ctx.Err,
		OnDamage: func(*source.DamageError) error { return nil },
	})
	f.Spans, f.Lost = info.Rows, g.info.Rows-info.Rows-info.Duplicates
	if err != nil || info.Rows == 0 {
		return errors.Join(err, r.dir.Discard(name))
	}
	f.New = r.dir.Path(name)
	return r.dir.Publish(name)
}

// setAside looks at the segments in the quarantine.
func (r *repairer) setAside(ctx context.Context) error {
	entries, err := r.dir.Quarantined()
	if err != nil {
		return err
	}
	before := slices.Clone(r.report.Files)
	for _, e := range entries {
		name := path.Join(r.dir.QuarantineDir(), e.Name)
		justNow := slices.ContainsFunc(before, func(f RepairFile) bool { return path.Base(f.File) == e.Name })
		if e.IsDir || justNow || !strings.HasSuffix(e.Name, ".seg") {
			continue
		}
		if err := r.quarantined(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (r *repairer) quarantined(ctx context.Context, name string) error {
	f := RepairFile{File: name, Action: stayedThere, Damage: []Damage{}}
	g, err := segment.Open(r.fs, name)
	if isDamage(err) {
		f.Damage = damageOf(err)
		r.add(f)
		return nil
	}
	if err != nil {
		return err
	}
	defer g.Close() // opened for reading: nothing to report
	info := g.Info()
	home, ok := directory.ParseSegment(info.LastArrival.UTC().Format("20060102") + "/" + path.Base(name))
	if !ok {
		r.add(f)
		return nil
	}
	s := &stored{Segment: g, name: home, info: info}
	if r.known(s) {
		f.Action = heldTwice
		r.add(f)
		return nil
	}
	return r.bring(ctx, s, f)
}

// bring puts a segment of the quarantine back, or what can be read of it.
func (r *repairer) bring(ctx context.Context, s *stored, f RepairFile) error {
	var err error
	if f.Damage, err = r.examine(ctx, s); err != nil {
		return err
	}
	if len(f.Damage) > 0 {
		if err := r.rewrite(ctx, s, &f); err != nil {
			return err
		}
		if f.New != "" {
			f.Action = rewritten
		}
		r.add(f)
		return nil
	}
	f.Action, f.New, f.Spans = putBack, r.dir.Path(s.name), s.info.Rows
	if !r.dry {
		err = r.dir.Restore(s.name)
	}
	r.add(f)
	return err
}

// known reports whether a segment of the store has the spans of another one.
func (r *repairer) known(s *stored) bool {
	return slices.ContainsFunc(r.snapshot.segments, func(g *stored) bool {
		return g.name == s.name || slices.ContainsFunc(g.info.Replaces, func(text string) bool { return path.Base(text) == path.Base(s.name.String()) }) ||
			s.name.IsSingleEpoch() && g.holds(s.name.First)
	}) || slices.ContainsFunc(r.snapshot.logs, func(l *replayed) bool { return s.name.InRange(l.epoch) })
}

func (r *Repair) write(out io.Writer) {
	if r.DryRun {
		fmt.Fprintln(out, "nothing is changed: this is what repair would do")
	}
	for _, f := range r.Files {
		fmt.Fprintf(out, "%s: %s", f.File, f.Action)
		if f.New != "" {
			fmt.Fprintf(out, "; %d spans are in %s", f.Spans, f.New)
		}
		if f.Lost > 0 {
			fmt.Fprintf(out, "; %d spans are lost", f.Lost)
		}
		fmt.Fprintln(out)
		for _, d := range f.Damage {
			fmt.Fprintf(out, "  %s: %s\n", d.Part, d.Error)
		}
	}
	if len(r.Files) == 0 {
		fmt.Fprintf(out, "%s: all segments are sound and none is in the quarantine\n", r.Store)
		return
	}
	fmt.Fprintf(out, "%s: %d files, %d spans lost\n", r.Store, len(r.Files), r.Lost)
}
