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
	"github.com/tracing-backend/tracing/exporters/disk/internal/tombstone"
	"github.com/tracing-backend/tracing/pipeline/commands"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// Repair is the result of `repair`: what it did or, with --dry-run, would do.
type Repair struct {
	Store  string       `json:"store"`
	DryRun bool         `json:"dry_run"`
	Files  []RepairFile `json:"files"` // damaged and missing files, and all segments and logs in the quarantine
	Lost   int          `json:"lost_spans"`
}

// RepairFile describes what was done with one file.
type RepairFile struct {
	File   string   `json:"file"`
	Action string   `json:"action"`
	New    string   `json:"new,omitempty"` // segment that now holds its spans
	Spans  int      `json:"spans"`         // readable
	Lost   int      `json:"lost_spans"`    // as far as known
	Damage []Damage `json:"damage"`
}

// Actions of a RepairFile.
const (
	rewritten       = "rewritten without its unreadable parts; the damaged file is in the quarantine"
	moved           = "unreadable; moved to the quarantine"
	restored        = "not damaged; moved back from the quarantine"
	leftUnreadable  = "left in the quarantine: unreadable"
	leftStoredTwice = "left in the quarantine: another segment has its spans"
	writtenAgain    = "rewritten; the damaged file is in the quarantine"
	copied          = "rewritten from its copy"
	listedAgain     = "rewritten; missing segments are unknown"
	gone            = "file is gone"
	trimmed         = "removed other data after the segment"
	deletionLost    = "unreadable; moved to the quarantine; the spans it deleted are visible again; repeat the deletion"
)

// repairer repairs one store. Except in a dry run it holds the lock of the folder.
type repairer struct {
	fs       vfs.FS
	dir      *directory.Dir
	snapshot *snapshot
	dry      bool
	report   *Repair
	back     []*stored // segments that this repair restored from the quarantine; closed
	progress *progress // of verification, in bytes
	read     int64     // size of the segments verified so far
}

func (t tool) repair(fs *flag.FlagSet) runner {
	dry := fs.Bool("dry-run", false, "Print what repair would do, without changing anything. Works while the store is in use.")
	asJSON := fs.Bool("json", false, "Print JSON.")
	return func(ctx context.Context, in commands.Invocation) error {
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
	s, err := takeSnapshot(fsys, dir, folder, false)
	if err != nil {
		return nil, err
	}
	defer s.close()
	r := &repairer{fs: fsys, dir: dir, snapshot: s, dry: dry, report: &Repair{Store: folder, DryRun: dry, Files: []RepairFile{}}}
	r.progress = newProgress(progressTo, "repair", s.bytes(), func() int64 { return r.read }, formatSize, time.Now)
	return r.report, r.run(ctx)
}

func (r *repairer) run(ctx context.Context) error {
	if d := r.dir.FormatDamage(); d != nil { // Open has rewritten it
		r.add(RepairFile{File: d.File, Action: writtenAgain, Damage: []Damage{{d.File, "version", 0, d.Err.Error()}}})
	}
	if err := r.repairDeletions(); err != nil {
		return err
	}
	if err := r.repairList(); err != nil {
		return err
	}
	for _, b := range r.snapshot.broken {
		if !isDamage(b.err) {
			return b.err // a newer version, or a temporary error of the disk
		}
		f := RepairFile{File: r.dir.Path(b.name), Action: moved, Damage: damageOf(b.err)}
		if err := r.quarantine(f.File); err != nil {
			return err
		}
		r.report.Files = append(r.report.Files, f)
	}
	for _, g := range slices.Clone(r.snapshot.segments) {
		if err := r.repairSegment(ctx, g); err != nil {
			return err
		}
	}
	if err := r.checkQuarantine(ctx); err != nil {
		return err
	}
	if err := r.repairLogs(ctx); err != nil {
		return err
	}
	for _, m := range r.snapshot.gone {
		if r.holderOf(m.First) == nil || r.holderOf(m.Last) == nil {
			r.add(RepairFile{File: r.dir.Path(m.Segment), Action: gone, Lost: m.Spans, Damage: []Damage{}})
		}
	}
	return nil
}

// repairList replaces a damaged list of segments before a change to the store adds to it.
func (r *repairer) repairList() error {
	damage := r.snapshot.segmentListDamage
	if damage == nil {
		return nil
	}
	file := r.dir.ListFile()
	r.add(RepairFile{File: file, Action: listedAgain, Damage: []Damage{{file, "list", 0, damage.Error()}}})
	if r.dry {
		return nil
	}
	spans := make(map[string]int)
	for _, g := range r.snapshot.segments {
		spans[g.name.String()] = g.info.Rows
	}
	r.dir.SetList(spans)
	return r.dir.SaveList()
}

// repairDeletions restores damaged files of deletions from their copies, and sets aside files
// without a sound copy.
func (r *repairer) repairDeletions() error {
	damaged := r.snapshot.damagedDeletions
	if !r.dry && len(damaged) > 0 {
		var err error
		if _, damaged, err = (tombstone.Dir{FS: r.fs, Path: path.Join(r.snapshot.path, deletionDir)}).Load(); err != nil {
			return err
		}
	}
	for _, d := range damaged {
		f := RepairFile{File: d.Paths[0], Action: copied, Damage: []Damage{{d.Paths[0], "deletion", 0, d.Err.Error()}}}
		for _, name := range d.Paths {
			if d.Restored {
				break
			}
			f.Action = deletionLost
			if err := r.quarantine(name); err != nil {
				return err
			}
		}
		r.add(f)
	}
	return nil
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

// examine verifies a segment and returns the damage. It removes other data after the segment.
func (r *repairer) examine(ctx context.Context, g *stored) ([]Damage, error) {
	if n := g.Trailing(); n > 0 && !r.dry {
		if err := g.Trim(r.fs); err != nil {
			return nil, err
		}
		r.add(RepairFile{File: g.Name(), Action: trimmed, Spans: g.info.Rows,
			Damage: []Damage{{g.Name(), "end", 0, fmt.Sprintf("%d bytes of other data follow the segment", n)}}})
	}
	v := Verification{Damage: []Damage{}}
	_, err := v.segment(ctx, g, r.progress.step)
	r.read += g.info.Size
	return v.Damage, err
}

// repairSegment checks a segment of the store and rewrites it if it is damaged.
func (r *repairer) repairSegment(ctx context.Context, g *stored) error {
	damage, err := r.examine(ctx, g)
	if err != nil || len(damage) == 0 {
		return err
	}
	f := RepairFile{File: g.Name(), Action: rewritten, Damage: damage}
	if err := r.rewrite(ctx, g, &f); err != nil {
		return err
	}
	if f.New == "" {
		f.Action = moved
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

// rewrite writes the readable rows of a segment to a new one and sets the counts of f. It sets
// f.New if there are readable rows.
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
	var info segment.Info
	err := r.dir.WithDay(name, func() (err error) {
		info, err = segment.Merge(r.fs, r.dir.StagingPath(name), []source.Source{g}, meta, segment.MergeOptions{
			Pace:     ctx.Err,
			OnDamage: func(*source.DamageError) error { return nil },
		})
		return err
	})
	f.Spans, f.Lost = info.Rows, g.info.Rows-info.Rows-info.Duplicates
	if err != nil || info.Rows == 0 {
		return errors.Join(err, r.dir.Discard(name))
	}
	f.New = r.dir.Path(name)
	return r.publish(name, info.Rows)
}

// publish makes a staged segment a part of the store.
func (r *repairer) publish(name directory.Segment, spans int) error {
	err := r.dir.Publish(name)
	if err == nil {
		r.dir.Enlist(name, spans)
	}
	return err
}

// checkQuarantine checks the segments that were in the quarantine before this repair.
func (r *repairer) checkQuarantine(ctx context.Context) error {
	entries, err := r.dir.Quarantined()
	if err != nil {
		return err
	}
	before := slices.Clone(r.report.Files)
	for _, e := range entries {
		name := path.Join(r.dir.QuarantineDir(), e.Name)
		isNew := slices.ContainsFunc(before, func(f RepairFile) bool { return path.Base(f.File) == e.Name })
		if e.IsDir || isNew || !strings.HasSuffix(e.Name, ".seg") {
			continue
		}
		if err := r.repairQuarantined(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// repairQuarantined moves a segment back to the store if no other segment has its spans.
func (r *repairer) repairQuarantined(ctx context.Context, name string) error {
	f := RepairFile{File: name, Action: leftUnreadable, Damage: []Damage{}}
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
	if r.isStored(s) {
		f.Action = leftStoredTwice
		r.add(f)
		return nil
	}
	return r.restore(ctx, s, f)
}

// restore moves a segment from the quarantine back to the store, or writes its readable rows to a
// new segment if it is damaged.
func (r *repairer) restore(ctx context.Context, s *stored, f RepairFile) error {
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
			r.back = append(r.back, s)
		}
		r.add(f)
		return nil
	}
	r.back = append(r.back, s)
	f.Action, f.New, f.Spans = restored, r.dir.Path(s.name), s.info.Rows
	if !r.dry {
		if err = r.dir.Restore(s.name); err == nil {
			r.dir.Enlist(s.name, s.info.Rows)
		}
	}
	r.add(f)
	return err
}

// isStored reports whether a segment or log of the store has the spans of s.
func (r *repairer) isStored(s *stored) bool {
	isS := func(text string) bool { return path.Base(text) == path.Base(s.name.String()) }
	return slices.ContainsFunc(r.snapshot.segments, func(g *stored) bool {
		return g.name == s.name || slices.ContainsFunc(g.info.Replaces, isS) || s.name.IsSingleEpoch() && g.holds(s.name.First)
	}) || slices.ContainsFunc(r.snapshot.logs, func(l *replayed) bool { return s.name.InRange(l.epoch) })
}

func (r *Repair) write(out io.Writer) {
	if r.DryRun {
		fmt.Fprintln(out, "dry run: nothing was changed")
	}
	for _, f := range r.Files {
		fmt.Fprintf(out, "%s: %s", f.File, f.Action)
		if f.New != "" {
			fmt.Fprintf(out, "; %d spans in %s", f.Spans, f.New)
		}
		if f.Lost > 0 {
			fmt.Fprintf(out, "; %d spans lost", f.Lost)
		}
		fmt.Fprintln(out)
		for _, d := range f.Damage {
			fmt.Fprintf(out, "  %s: %s\n", d.Part, d.Error)
		}
	}
	if len(r.Files) == 0 {
		fmt.Fprintf(out, "%s: no segment is damaged and the quarantine has no segments or logs\n", r.Store)
		return
	}
	fmt.Fprintf(out, "%s: %d files, %d spans lost\n", r.Store, len(r.Files), r.Lost)
}
