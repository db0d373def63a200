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
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// erase deletes spans as the exporter does, and returns the path of the mark.
func (s *store) erase(m tombstone.Tombstone) string {
	s.t.Helper()
	marks := tombstone.Dir{FS: vfs.OS(), Path: path.Join(s.path, deletionDir)}
	check(s.t, marks.Write(&m))
	return marks.File(m.Number)
}

// Spans that were deleted are not exported, be they in segments or in the log, and what came after the deletion is. A deletion that cannot be
// read is no secret.
func TestExportDeleted(t *testing.T) {
	s := newStore(t)
	made := synthetic(t, 1, 4000, "")
	service := made[0].Services()[0].Service
	s.segment(1, made[:6]...)
	s.log(5, made[6:10]...)
	kept := s.spans(func(_ *otlpdata.Span, of string) bool { return of != service })
	all := s.spans(nil)
	s.segment(7, synthetic(t, 9, 500, "")...)
	later := slices.DeleteFunc(s.spans(nil), func(text string) bool { _, before := slices.BinarySearch(all, text); return before })
	file := s.erase(tombstone.Tombstone{Number: 1, Through: 5, Service: service, To: 1<<64 - 1})
	dir := s.leave()
	want := append(kept, later...)
	slices.Sort(want)
	if got := contentsOf(t, dir); !slices.Equal(got, want) || len(kept) == len(all) {
		t.Errorf("%d spans, want %d of %d", len(got), len(want), len(all)+len(later))
	}
	if text := mustRun(t, "inspect", dir); !strings.Contains(text, "1 on record, 0 damaged") {
		t.Error(text)
	}

	damage(t, file, 30)
	code, _, stderr := run(t, "export", dir, "--format=otlp-proto", "--out", filepath.Join(t.TempDir(), "out"))
	if code != 1 || !strings.Contains(stderr, file) || !strings.Contains(stderr, "repeat the deletion") {
		t.Errorf("%d %s", code, stderr)
	}
	if v := verified(t, dir); len(v.Damage) != 1 || v.Damage[0].File != file {
		t.Errorf("%+v", v)
	}
}

// The commands that only read leave alone what a program beside them has not finished.
func TestReadersChangeNothing(t *testing.T) {
	s := small(t)
	s.erase(tombstone.Tombstone{Number: 1, Service: "none"})
	for _, name := range []string{"deletions/0000000000000002.mark", "seg/20261121/x.seg", "log/0000000000000001-0000.log", "FORMAT"} {
		check(t, os.WriteFile(filepath.Join(s.path, name+vfs.TempSuffix), []byte("half"), 0o600))
	}
	before := filesOf(t, s.path)
	mustRun(t, "inspect", s.path, "--columns")
	mustRun(t, "verify", s.path)
	mustRun(t, "repair", s.path, "--dry-run")
	mustRun(t, "export", s.path, "--format=parquet", "--out", filepath.Join(t.TempDir(), "out"))
	if after := filesOf(t, s.path); !slices.Equal(before, after) {
		t.Errorf("files before and after:\n%s\n%s", before, after)
	}
}

// What a damaged log has lost is missing from an export, which says so.
func TestExportDamagedLog(t *testing.T) {
	s := small(t)
	logs, err := filepath.Glob(filepath.Join(s.path, "log", "*.log"))
	check(t, err)
	damage(t, logs[0], 100)
	code, stdout, stderr := run(t, "export", s.leave(), "--format=otlp-json", "--out", filepath.Join(t.TempDir(), "out"))
	if code != 1 || !strings.Contains(stderr, logs[0]) || !strings.Contains(stdout, "spans in") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
}
