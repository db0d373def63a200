package storetool

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// Inspection is the result of `inspect`. Sizes are in bytes. Start times are as sent by clients.
// All times are in UTC.
type Inspection struct {
	Store      string       `json:"store"`
	Version    int          `json:"version"`
	Totals     Totals       `json:"totals"`
	Segments   []SegmentRow `json:"segments"`
	Unreadable []Unreadable `json:"unreadable"`
	// Replaced lists segments whose spans are in another segment. The server deletes them when it
	// starts, or when no query reads them.
	Replaced   []string   `json:"replaced"`
	Logs       []LogRow   `json:"logs"`
	SpareLogs  Files      `json:"spare_logs"`
	Reserve    int64      `json:"reserve_bytes"`
	Quarantine Quarantine `json:"quarantine"`
	// Damage lists the damage that can be found without reading blocks: in the version of the
	// store, headers of segments, recorded deletions and logs. For everything else, see verify.
	Damage []Damage `json:"damage"`
	// Deletions counts the recorded deletions. Deleted spans are included in the numbers above
	// until compaction rewrites their segments.
	Deletions Deletions `json:"deletions"`
	// Shares lists the size of each part of the segments, largest first. Only with --columns.
	Shares []Share `json:"shares,omitempty"`
}

// Totals sums up the readable segments and logs.
type Totals struct {
	Segments     int        `json:"segments"`
	Spans        int        `json:"spans"`
	SpansInLog   int        `json:"spans_in_log"`
	Traces       int        `json:"traces"` // a trace in several segments counts once in each
	Bytes        int64      `json:"bytes"`
	BytesPerSpan float64    `json:"bytes_per_span"`
	Services     int        `json:"services"` // distinct services
	FirstStart   *time.Time `json:"first_start,omitempty"`
	LastStart    *time.Time `json:"last_start,omitempty"`
}

// SegmentRow describes a segment.
type SegmentRow struct {
	Name         string     `json:"name"` // within the folder seg
	Level        int        `json:"level"`
	Spans        int        `json:"spans"`
	Traces       int        `json:"traces"`
	Blocks       int        `json:"blocks"`
	Bytes        int64      `json:"bytes"`
	BytesPerSpan float64    `json:"bytes_per_span"`
	FirstStart   *time.Time `json:"first_start,omitempty"`
	LastStart    *time.Time `json:"last_start,omitempty"`
	FirstArrival *time.Time `json:"first_arrival,omitempty"`
	LastArrival  *time.Time `json:"last_arrival,omitempty"`
	Duplicates   int        `json:"duplicates"` // spans that were not stored again
	Services     int        `json:"services"`
	Replaces     []string   `json:"replaces,omitempty"`
}

// Unreadable is a file that cannot be opened.
type Unreadable struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Error string `json:"error"`
}

// LogRow describes a log whose spans are not in a segment yet.
type LogRow struct {
	Epoch   string    `json:"epoch"` // as in file names: hexadecimal Unix nanoseconds, usually when it began
	Began   time.Time `json:"began"`
	Files   int       `json:"files"`
	Bytes   int64     `json:"bytes"`
	Spans   int       `json:"spans"`
	Damaged bool      `json:"damaged"`
}

// Files is a number of files and their total size.
type Files struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Quarantine describes the quarantine folder.
type Quarantine struct {
	Files
	Names []string `json:"names"`
	// Notes holds the notes about damaged logs by file name.
	Notes map[string]string `json:"notes"`
}

// Deletions counts recorded deletions.
type Deletions struct {
	Readable int `json:"readable"`
	Damaged  int `json:"damaged"` // their spans are visible again
}

// Share is the size of one part, summed over all segments.
type Share struct {
	Section      string  `json:"section"`
	Part         string  `json:"part"`
	Bytes        int64   `json:"bytes"`
	BytesPerSpan float64 `json:"bytes_per_span"`
}

// inspect describes a store.
func inspect(ctx context.Context, s *snapshot, columns bool) (*Inspection, error) {
	in := &Inspection{Store: s.path, Version: directory.Version, Segments: []SegmentRow{}, Unreadable: []Unreadable{}, Replaced: []string{},
		Logs: []LogRow{}, SpareLogs: Files{s.spares.parts, s.spares.bytes}, Deletions: Deletions{len(s.deletions), s.lostDeletions()}}
	known := Verification{Damage: []Damage{}}
	known.unopened(s)
	known.restorable(s)
	services := map[string]bool{}
	for _, g := range s.segments {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := g.VerifyHeader(); err != nil {
			known.note(err, g.Name(), "header")
		}
		row := describe(g)
		if t, err := g.Tables(); err == nil {
			row.Services = len(t.Services)
			for _, of := range t.Services {
				services[of.Tenant+"\x00"+of.Name] = true
			}
		} else {
			in.Unreadable = append(in.Unreadable, Unreadable{g.name.String(), g.name.Size, err.Error()})
		}
		in.Segments = append(in.Segments, row)
		in.Totals.add(&row)
	}
	in.Totals.Services = len(services)
	in.Totals.BytesPerSpan = perSpan(in.Totals.Bytes, in.Totals.Spans)
	for _, b := range s.broken {
		in.Unreadable = append(in.Unreadable, Unreadable{b.name.String(), b.name.Size, b.err.Error()})
	}
	in.Damage = known.Damage
	for _, name := range s.replaced {
		in.Replaced = append(in.Replaced, name.String())
	}
	for _, l := range s.logs {
		began := time.Unix(0, int64(l.epoch)).UTC()
		in.Logs = append(in.Logs, LogRow{fmt.Sprintf("%016x", l.epoch), began, l.parts, l.bytes, l.rows, l.damaged()})
		in.Totals.SpansInLog += l.rows
	}
	var err error
	if in.Reserve, err = s.dir.ReserveSize(); err != nil {
		return nil, err
	}
	if in.Quarantine, err = s.quarantine(); err != nil {
		return nil, err
	}
	if columns {
		in.Shares, err = shares(ctx, s)
	}
	return in, err
}

func describe(g *stored) SegmentRow {
	i := &g.info
	row := SegmentRow{Name: g.name.String(), Level: i.Level, Spans: i.Rows, Traces: i.Traces, Blocks: i.Blocks, Bytes: i.Size,
		BytesPerSpan: perSpan(i.Size, i.Rows), FirstArrival: known(i.FirstArrival), LastArrival: known(i.LastArrival),
		Duplicates: i.Duplicates, Replaces: i.Replaces}
	if i.Rows > 0 {
		row.FirstStart, row.LastStart = known(time.Unix(0, int64(i.MinStart))), known(time.Unix(0, int64(i.MaxStart)))
	}
	return row
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func perSpan(bytes int64, spans int) float64 {
	if spans == 0 {
		return 0
	}
	return math.Round(100*float64(bytes)/float64(spans)) / 100
}

func (t *Totals) add(r *SegmentRow) {
	t.Segments++
	t.Spans += r.Spans
	t.Traces += r.Traces
	t.Bytes += r.Bytes
	if r.FirstStart != nil && (t.FirstStart == nil || r.FirstStart.Before(*t.FirstStart)) {
		t.FirstStart = r.FirstStart
	}
	if r.LastStart != nil && (t.LastStart == nil || r.LastStart.After(*t.LastStart)) {
		t.LastStart = r.LastStart
	}
}

const (
	noteSuffix = ".damage.txt"
	// maxNote limits how much of a note is shown, in bytes.
	maxNote = 1 << 20
)

func (s *snapshot) quarantine() (Quarantine, error) {
	q := Quarantine{Names: []string{}, Notes: map[string]string{}}
	entries, err := s.dir.Quarantined()
	if err != nil {
		return q, err
	}
	for _, e := range entries {
		q.Names = append(q.Names, e.Name)
		q.Files.Files++
		q.Bytes += e.Size
		if !strings.HasSuffix(e.Name, noteSuffix) {
			continue
		}
		text, err := vfs.ReadFile(s.fs, path.Join(s.dir.QuarantineDir(), e.Name), maxNote)
		if err != nil {
			text = []byte(err.Error())
		}
		q.Notes[e.Name] = strings.TrimSpace(string(text))
	}
	return q, nil
}

// shares sums up the sizes of the parts of all segments.
func shares(ctx context.Context, s *snapshot) ([]Share, error) {
	type part struct{ section, name string }
	sums, spans := map[part]int64{}, 0
	for _, g := range s.segments {
		spans += g.info.Rows
		err := g.Sizes(ctx, func(p segment.Part) { sums[part{p.Section, nameOf(p)}] += p.Bytes })
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err != nil {
			sums[part{"unreadable", err.Error()}] += 0
		}
	}
	all := []Share{}
	for p, bytes := range maps.All(sums) {
		all = append(all, Share{p.section, p.name, bytes, perSpan(bytes, spans)})
	}
	slices.SortFunc(all, func(a, b Share) int {
		return cmp.Or(-cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Section, b.Section), cmp.Compare(a.Part, b.Part))
	})
	return all, nil
}

// nameOf returns the displayed name of a part of a segment.
func nameOf(p segment.Part) string {
	if p.Column == nil {
		return p.Name
	}
	return columnName(p.Column)
}
