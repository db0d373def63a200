package storetool

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// verified runs verify and returns its result.
func verified(t *testing.T, dir string) Verification {
	t.Helper()
	code, stdout, stderr := run(t, "verify", dir, "--json")
	var v Verification
	check(t, json.Unmarshal([]byte(stdout), &v))
	if (code == 1) != (len(v.Damage) > 0) || code > 1 {
		t.Errorf("exit code %d with %d damaged places: %s", code, len(v.Damage), stderr)
	}
	return v
}

func repaired(t *testing.T, dir string, flags ...string) Repair {
	t.Helper()
	var r Repair
	check(t, json.Unmarshal([]byte(mustRun(t, append([]string{"repair", dir, "--json"}, flags...)...)), &r))
	return r
}

// contentsOf returns the spans of a store, as exported.
func contentsOf(t *testing.T, dir string) []string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	mustRun(t, "export", dir, "--format=otlp-proto", "--output", out)
	return exported(t, out, "")
}

func TestVerifyUndamaged(t *testing.T) {
	s := smallStore(t)
	v := verified(t, s.path) // locked, as by a running program
	if len(v.Damage) > 0 || v.Segments != 2 || v.Logs != 1 || v.Spans == 0 || v.LogSpans == 0 {
		t.Errorf("%+v", v)
	}
	if text := mustRun(t, "verify", s.unlock()); !strings.Contains(text, "no damage found") {
		t.Error(text)
	}
}

// repair keeps all rows except the rows of the damaged block, and moves the damaged file to the
// quarantine.
func TestRepairBlock(t *testing.T) {
	soak.SkipIfRaced(t)
	s := newStore(t)
	made := synthetic(t, 3, 12_000, "")
	file := s.segment(1, made...)
	other := s.segment(2, synthetic(t, 4, 500, "")...)
	all, dir := s.spans(nil), s.unlock()
	damage(t, file, 20_000) // in the first block
	v := verified(t, dir)
	if len(v.Damage) != 1 || v.Damage[0].File != file || v.Damage[0].Spans == 0 || !strings.HasPrefix(v.Damage[0].Part, "block 0") {
		t.Fatalf("%+v", v)
	}
	dry := repaired(t, dir, "--dry-run")
	if len(dry.Files) != 1 || dry.Lost == 0 || len(verified(t, dir).Damage) == 0 {
		t.Errorf("dry run: %+v", dry)
	}
	r := repaired(t, dir)
	if len(r.Files) != 1 || r.Lost == 0 || r.Lost > v.Damage[0].Spans || r.Files[0].Spans+r.Lost+500 > len(all)+200 {
		t.Errorf("%+v", r)
	}
	if v := verified(t, dir); len(v.Damage) > 0 || v.Segments != 2 {
		t.Errorf("after repair: %+v", v)
	}
	got := contentsOf(t, dir)
	if len(got)+r.Lost != len(all) || slices.ContainsFunc(got, func(s string) bool { _, ok := slices.BinarySearch(all, s); return !ok }) {
		t.Errorf("%d of %d spans are left, %d are lost", len(got), len(all), r.Lost)
	}
	if _, err := os.Stat(filepath.Join(dir, "quarantine", filepath.Base(file))); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	if r := repaired(t, dir); len(r.Files) != 1 || r.Files[0].Action != leftStoredTwice || r.Lost != 0 {
		t.Errorf("second repair: %+v", r)
	}
}

// Damage to an index loses no spans.
func TestRepairIndex(t *testing.T) {
	soak.SkipIfRaced(t)
	s := newStore(t)
	file := s.segment(1, synthetic(t, 3, 3000, "")...)
	all, dir := s.spans(nil), s.unlock()
	info, err := os.Stat(file)
	check(t, err)
	// The info, the directory of sections and the trailer are not larger than this.
	const end = 1000
	// The sections are at the end.
	for at := info.Size() - end; len(verified(t, dir).Damage) == 0; at -= 600 {
		damage(t, file, at)
		if v := verified(t, dir); len(v.Damage) > 0 && v.lost() > 0 {
			damage(t, file, at) // undo: this part is needed to read rows
		}
	}
	if r := repaired(t, dir); r.Lost != 0 || len(r.Files) != 1 || r.Files[0].Spans != len(all) {
		t.Errorf("%+v", r)
	}
	if got := contentsOf(t, dir); !slices.Equal(got, all) {
		t.Errorf("%d spans, want %d", len(got), len(all))
	}
}

// A truncated segment moves to the quarantine. An undamaged segment in the quarantine moves back.
func TestRepairQuarantine(t *testing.T) {
	s := newStore(t)
	lost := s.segment(1, synthetic(t, 1, 500, "")...)
	sound := s.segment(2, synthetic(t, 2, 500, "")...)
	kept := s.segment(3, synthetic(t, 3, 500, "")...)
	dir := s.unlock()
	info, err := os.Stat(lost)
	check(t, err)
	check(t, os.Truncate(lost, info.Size()-1))
	check(t, os.Rename(sound, filepath.Join(dir, "quarantine", filepath.Base(sound))))
	if v := verified(t, dir); len(v.Damage) != 1 || v.Damage[0].File != lost || v.Segments != 1 {
		t.Errorf("%+v", v)
	}
	r := repaired(t, dir)
	if len(r.Files) != 2 || r.Files[0].Action != moved || r.Files[1].Action != restored || r.Files[1].New != sound {
		t.Errorf("%+v", r)
	}
	for file, there := range map[string]bool{lost: false, sound: true, kept: true} {
		if _, err := os.Stat(file); (err == nil) != there {
			t.Errorf("%s exists: %v, want %v", file, err == nil, there)
		}
	}
	if r := repaired(t, dir); len(r.Files) != 1 || r.Files[0].Action != leftUnreadable {
		t.Errorf("second repair: %+v", r)
	}
	code, text, _ := run(t, "repair", dir)
	if code != 0 || !strings.Contains(text, leftUnreadable) {
		t.Errorf("%d %s", code, text)
	}
}

func TestRepairNeedsTheLock(t *testing.T) {
	s := smallStore(t)
	if code, _, stderr := run(t, "repair", s.path); code != 1 || !strings.Contains(stderr, "in use by another process") {
		t.Errorf("%d %s", code, stderr)
	}
	mustRun(t, "repair", s.unlock())
}

// verify reports damage to the log and still counts its readable spans.
func TestDamagedLog(t *testing.T) {
	s := smallStore(t)
	dir := s.unlock()
	logs, err := filepath.Glob(filepath.Join(dir, "log", "*.log"))
	check(t, err)
	before := verified(t, dir)
	damage(t, logs[0], 100) // in the first record, whose definitions later records need
	v := verified(t, dir)
	if len(v.Damage) == 0 || v.LogSpans >= before.LogSpans {
		t.Errorf("%+v", v)
	}
}

// A log that is cut or gone is damage.
func TestLostLog(t *testing.T) {
	for want, change := range map[string]func(file string) error{
		"files of the log are gone": os.Remove,
		"end of the log is missing": func(file string) error { return os.Truncate(file, 0) },
	} {
		s := smallStore(t)
		logs, err := filepath.Glob(filepath.Join(s.path, "log", "*.log"))
		check(t, err)
		check(t, change(logs[0]))
		dir := s.unlock()
		if v := verified(t, dir); len(v.Damage) == 0 || v.Damage[0].Error[:len(want)] != want {
			t.Errorf("verify: %+v, want %s", v.Damage, want)
		}
		if text := mustRun(t, "inspect", dir); !strings.Contains(text, want) {
			t.Errorf("inspect says nothing of the log:\n%s", text)
		}
	}
}

// A segment whose file is gone is damage, until the quarantine has a note about it. Repair enlists
// the segments that it writes.
func TestLostSegment(t *testing.T) {
	soak.SkipIfRaced(t)
	const want = "file of the segment is gone"
	s := newStore(t)
	damaged := s.segment(1, synthetic(t, 1, 12_000, "")...)
	other := s.segment(2, synthetic(t, 2, 500, "")...)
	name, _ := directory.ParseSegment(strings.TrimPrefix(filepath.ToSlash(other), s.path+"/seg/"))
	s.dir.Enlist(name, 500)
	damage(t, damaged, 20_000)
	dir := s.unlock()
	check(t, os.Remove(other))
	if v := verified(t, dir); len(v.Damage) == 0 || v.Damage[0].File != other || v.Damage[0].Spans != 500 {
		t.Errorf("verify: %+v, want %s", v.Damage, want)
	}
	if text := mustRun(t, "inspect", dir); !strings.Contains(text, want) {
		t.Errorf("inspect says nothing of the segment:\n%s", text)
	}
	r := repaired(t, dir)
	if last := r.Files[len(r.Files)-1]; last.File != other || last.Lost != 500 || last.Action != gone || r.Lost < 500 {
		t.Errorf("repair: %+v, want %s", r, want)
	}
	check(t, os.Remove(r.Files[0].New))
	if text := mustRun(t, "inspect", dir); strings.Count(text, want) != 2 {
		t.Errorf("inspect after repair:\n%s", text)
	}
	s.open()
	check(t, s.dir.MarkMissing(name, "its file is missing"))
	s.unlock()
	if text := mustRun(t, "inspect", dir); strings.Count(text, want) != 1 || !strings.Contains(text, "its file is missing") {
		t.Errorf("inspect with a note:\n%s", text)
	}
}

// A segment whose log still exists is not missing: the next start flushes the log again.
func TestLostSegmentWithLog(t *testing.T) {
	s := newStore(t)
	file := s.segment(1, synthetic(t, 2, 500, "")...)
	s.log(1, synthetic(t, 2, 500, "")...)
	name, _ := directory.ParseSegment(strings.TrimPrefix(filepath.ToSlash(file), s.path+"/seg/"))
	s.dir.Enlist(name, 500)
	dir := s.unlock()
	check(t, os.Remove(file))
	if v := verified(t, dir); len(v.Damage) > 0 || v.LogSpans == 0 {
		t.Errorf("verify: %+v, want the log and no damage", v)
	}
}

// Repair says that the list of segments is damaged, and lists all segments again, although it
// changes one.
func TestRepairList(t *testing.T) {
	soak.SkipIfRaced(t)
	s := newStore(t)
	damaged := s.segment(1, synthetic(t, 1, 12_000, "")...)
	sound := s.segment(2, synthetic(t, 2, 500, "")...)
	list := s.dir.ListFile()
	dir := s.unlock()
	damage(t, damaged, 20_000)
	check(t, os.WriteFile(list, []byte("damaged"), 0o600))
	for _, r := range []Repair{repaired(t, dir, "--dry-run"), repaired(t, dir)} {
		if f := r.Files[0]; f.File != list || f.Action != listedAgain || len(f.Damage) != 1 || len(r.Files) != 2 {
			t.Errorf("repair: %+v, want that %s is damaged", r.Files, list)
		}
	}
	if v := verified(t, dir); len(v.Damage) > 0 {
		t.Errorf("verify after repair: %+v", v.Damage)
	}
	check(t, os.Remove(sound))
	if v := verified(t, dir); len(v.Damage) != 1 || v.Damage[0].File != sound {
		t.Errorf("verify: %+v, want that %s is gone", v.Damage, sound)
	}
}

// An error of the disk while the list of segments is read is not damage, and the list stays as it
// is.
func TestUnreadableList(t *testing.T) {
	s := newStore(t)
	file := s.segment(1, synthetic(t, 2, 500, "")...)
	name, _ := directory.ParseSegment(strings.TrimPrefix(filepath.ToSlash(file), s.path+"/seg/"))
	s.dir.Enlist(name, 500)
	dir := s.unlock()
	for _, what := range []string{"segments.list", "quarantine"} {
		fault := &vfstest.Rule{Op: vfstest.OpRead | vfstest.OpReadDir, Path: what, Err: vfstest.ErrIO}
		if snapshot, err := openSnapshot(vfstest.Inject(vfs.OS(), fault), dir, false); !errors.Is(err, vfstest.ErrIO) {
			t.Errorf("%s: %v, %v, want the error of the disk", what, snapshot, err)
		}
	}
}

// Data after a segment is damage that costs no spans. Repair removes it.
func TestRepairTrailingData(t *testing.T) {
	s := newStore(t)
	file := s.segment(1, synthetic(t, 3, 500, "")...)
	all, dir := s.spans(nil), s.unlock()
	before, err := os.ReadFile(file)
	check(t, err)
	garbage := append(append(make([]byte, 3<<20), "SPANSEGM"...), before[:100]...)
	check(t, os.WriteFile(file, append(slices.Clone(before), garbage...), 0o600))
	if v := verified(t, dir); len(v.Damage) != 1 || v.Damage[0].Part != "end" || v.lost() > 0 {
		t.Errorf("verify: %+v", v)
	}
	if r := repaired(t, dir); len(r.Files) != 1 || r.Files[0].Action != trimmed || r.Lost > 0 {
		t.Errorf("repair: %+v", r)
	}
	if after, err := os.ReadFile(file); err != nil || !slices.Equal(after, before) {
		t.Errorf("repaired file has %d bytes, %v, want %d", len(after), err, len(before))
	}
	if got := contentsOf(t, dir); !slices.Equal(got, all) {
		t.Errorf("%d spans, want %d", len(got), len(all))
	}
}

// quarantinedLog moves the log of a store to the quarantine and returns its path there.
func quarantinedLog(t *testing.T, dir string) string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "log", "*-0000.log"))
	check(t, err)
	to := filepath.Join(dir, "quarantine", filepath.Base(logs[0]))
	check(t, os.Rename(logs[0], to))
	check(t, os.RemoveAll(filepath.Join(dir, "log", "logs.list")))
	return to
}

// Repair writes the readable spans of a log in the quarantine to a segment if no segment has them,
// and adds those that a segment lacks.
func TestRepairQuarantinedLog(t *testing.T) {
	soak.SkipIfRaced(t)
	s := newStore(t)
	s.log(uint64(began.UnixNano()), synthetic(t, 5, 3000, "")...)
	all, dir := s.spans(nil), s.unlock()
	file := quarantinedLog(t, dir)
	damage(t, file, 700)
	if r := repaired(t, dir, "--dry-run"); len(r.Files) != 1 || r.Files[0].Action != salvaged {
		t.Errorf("dry run: %+v", r)
	}
	r := repaired(t, dir)
	if len(r.Files) != 1 || r.Files[0].Action != salvaged || len(r.Files[0].Damage) != 1 || r.Lost == 0 ||
		r.Files[0].Spans+r.Lost != len(all) {
		t.Fatalf("%+v, want %d spans in total", r, len(all))
	}
	if got := contentsOf(t, dir); len(got) != r.Files[0].Spans {
		t.Errorf("%d spans, want %d", len(got), r.Files[0].Spans)
	}
	if r := repaired(t, dir); len(r.Files) != 1 || r.Files[0].Action != leftStoredLog || r.Lost > 0 {
		t.Errorf("second repair: %+v", r)
	}
	damage(t, file, 700) // undo: the disk can read the log again
	if r := repaired(t, dir); len(r.Files) != 1 || r.Files[0].Action != salvaged || r.Lost > 0 {
		t.Errorf("after undoing the damage: %+v", r)
	}
	if got := contentsOf(t, dir); !slices.Equal(got, all) {
		t.Errorf("%d spans, want %d", len(got), len(all))
	}
	if v := verified(t, dir); len(v.Damage) > 0 {
		t.Errorf("verify: %+v", v)
	}
	if r := repaired(t, dir); len(r.Files) != 1 || r.Files[0].Action != leftStoredLog {
		t.Errorf("last repair: %+v", r)
	}
}
