package storetool

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/tombstone"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// deleteSpans writes a tombstone as the exporter does, and returns its path.
func (s *store) deleteSpans(m tombstone.Tombstone) string {
	s.t.Helper()
	tombstones := tombstone.Dir{FS: vfs.OS(), Path: path.Join(s.path, deletionDir)}
	check(s.t, tombstones.Write(&m))
	return tombstones.File(m.Number)
}

// Deleted spans are not exported, whether they are in segments or in the log. Spans that arrived
// after the deletion are exported. A damaged tombstone is reported.
func TestExportDeleted(t *testing.T) {
	soak.SkipIfRaced(t)
	s := newStore(t)
	made := synthetic(t, 1, 4000, "")
	service := made[0].Services()[0].Service
	s.segment(1, made[:6]...)
	s.log(5, made[6:10]...)
	kept := s.spans(func(_ *otlpdata.Span, of string) bool { return of != service })
	all := s.spans(nil)
	s.segment(7, synthetic(t, 9, 500, "")...)
	later := slices.DeleteFunc(s.spans(nil), func(text string) bool { _, before := slices.BinarySearch(all, text); return before })
	file := s.deleteSpans(tombstone.Tombstone{Number: 1, Through: 5, Service: service, To: 1<<64 - 1})
	dir := s.unlock()
	want := append(kept, later...)
	slices.Sort(want)
	if got := contentsOf(t, dir); !slices.Equal(got, want) || len(kept) == len(all) {
		t.Errorf("%d spans, want %d of %d", len(got), len(want), len(all)+len(later))
	}
	if text := mustRun(t, "inspect", dir); !strings.Contains(text, "1 recorded, 0 damaged") {
		t.Error(text)
	}

	damage(t, file, 30) // its copy is sound
	damage(t, filepath.Join(dir, "FORMAT"), 5)
	if got := contentsOf(t, dir); !slices.Equal(got, want) {
		t.Errorf("with a damaged file of two: %d spans, want %d", len(got), len(want))
	}
	if text := mustRun(t, "inspect", dir); !strings.Contains(text, file+": deletion") || !strings.Contains(text, "FORMAT: version") {
		t.Error(text)
	}
	if v := verified(t, dir); len(v.Damage) != 2 || v.Damage[1].File != file {
		t.Errorf("%+v", v)
	}
	if r := repaired(t, dir); len(r.Files) != 2 || r.Files[0].Action != writtenAgain || r.Files[1].Action != copied {
		t.Errorf("%+v", r)
	}
	if v := verified(t, dir); len(v.Damage) > 0 {
		t.Errorf("after repair: %+v", v)
	}
	damage(t, file, 30)
	damage(t, strings.TrimSuffix(file, ".mark")+".copy", 31)
	code, _, stderr := run(t, "export", dir, "--format=otlp-proto", "--output", filepath.Join(t.TempDir(), "out"))
	if code != 1 || !strings.Contains(stderr, strings.TrimSuffix(file, ".mark")) || !strings.Contains(stderr, "repeat the deletion") {
		t.Errorf("%d %s", code, stderr)
	}
	if v := verified(t, dir); len(v.Damage) != 1 || !strings.HasPrefix(v.Damage[0].File, strings.TrimSuffix(file, ".mark")) {
		t.Errorf("%+v", v)
	}
}

// The read-only commands do not touch files that a running server has not completed.
func TestReadOnlyCommandsChangeNothing(t *testing.T) {
	s := smallStore(t)
	s.deleteSpans(tombstone.Tombstone{Number: 1, Service: "none"})
	for _, name := range []string{"deletions/0000000000000002.mark", "seg/20261121/x.seg", "log/0000000000000001-0000.log", "FORMAT"} {
		check(t, os.WriteFile(filepath.Join(s.path, name+vfs.TempSuffix), []byte("half"), 0o600))
	}
	before := filesOf(t, s.path)
	mustRun(t, "inspect", s.path, "--columns")
	mustRun(t, "verify", s.path)
	mustRun(t, "repair", s.path, "--dry-run")
	mustRun(t, "export", s.path, "--format=parquet", "--output", filepath.Join(t.TempDir(), "out"))
	if after := filesOf(t, s.path); !slices.Equal(before, after) {
		t.Errorf("files before and after:\n%s\n%s", before, after)
	}
}

// An export reports that spans of a damaged log are missing.
func TestExportDamagedLog(t *testing.T) {
	s := smallStore(t)
	logs, err := filepath.Glob(filepath.Join(s.path, "log", "*.log"))
	check(t, err)
	damage(t, logs[0], 100)
	code, stdout, stderr := run(t, "export", s.unlock(), "--format=otlp-json", "--output", filepath.Join(t.TempDir(), "out"))
	if code != 1 || !strings.Contains(stderr, logs[0]) || !strings.Contains(stdout, "exported ") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
}
