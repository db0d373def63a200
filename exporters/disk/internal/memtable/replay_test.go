package memtable

import (
	"errors"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
)

func replayAll(tb testing.TB, o Options, records [][]byte) *Table {
	tb.Helper()
	table := New(o)
	for i, r := range records {
		// Replay must not retain its argument.
		b := slices.Clone(r)
		if lost, err := table.Replay(b); lost > 0 || err != nil {
			tb.Fatalf("record %d: %d rows lost, %v", i, lost, err)
		}
		clear(b)
	}
	return table
}

// TestReplay checks that a replayed table has the same content and continues like the original.
func TestReplay(t *testing.T) {
	soak.SkipIfRaced(t)
	for seed := range uint64(10) {
		batches := randomBatches(t, seed, 30)
		original := New(tight())
		records := fill(t, original, batches[:20])
		replayed := replayAll(t, tight(), records)
		checkContent(t, replayed.Source(), contentOf(t, batches[:20]...))
		if a, b := original.Input(), replayed.Input(); a.Rows != b.Rows || string(a.Row(a.Rows-1)) != string(b.Row(a.Rows-1)) {
			t.Fatal("rows differ")
		}
		records = append(records, fill(t, replayed, batches[20:])...)
		want := contentOf(t, batches...)
		checkContent(t, replayed.Source(), want)
		checkContent(t, replayAll(t, tight(), records).Source(), want)
	}
}

// TestReplayDefinesNothingTwice checks that definitions from the log are not defined again.
func TestReplayDefinesNothingTwice(t *testing.T) {
	batches := benchBatches(t, 2000, 100)
	records := fill(t, New(Options{}), batches)
	replayed := replayAll(t, Options{}, records)
	columns, shapes, words := len(replayed.tables.Columns), len(replayed.tables.Shapes), countWords(&replayed.tables)
	fill(t, replayed, batches)
	if len(replayed.tables.Columns) != columns || len(replayed.tables.Shapes) != shapes || countWords(&replayed.tables) > words+words/50 {
		t.Errorf("%d columns, %d shapes, %d words; before appending the same batches: %d, %d, %d", len(replayed.tables.Columns),
			len(replayed.tables.Shapes), countWords(&replayed.tables), columns, shapes, words)
	}
}

func countWords(t *rows.Tables) int {
	n := 0
	for _, w := range t.Words {
		n += len(w)
	}
	return n
}

// TestReplayWithoutOneRecord checks that a missing record affects only its own rows and those that
// refer to its definitions, and that the latter are counted.
func TestReplayWithoutOneRecord(t *testing.T) {
	soak.SkipIfRaced(t)
	for seed := range uint64(10) {
		batches := randomBatches(t, seed, 12)
		records := fill(t, New(tight()), batches)
		for missing := range records {
			table, lost := New(tight()), 0
			for i, r := range records {
				if i == missing {
					continue
				}
				n, err := table.Replay(r)
				if err != nil {
					t.Fatal(err)
				}
				lost += n
			}
			whole := contentOf(t, batches...)
			got, err := scan(table.Source())
			if err != nil {
				t.Fatal(err)
			}
			if want := whole.spans() - batches[missing].Len() - lost; got.spans() != want || table.Rows() != want {
				t.Fatalf("without record %d: %d spans, want %d", missing, got.spans(), want)
			}
			for k, spans := range got {
				for s, times := range spans {
					if whole[k][s] < times {
						t.Fatalf("without record %d: trace %s has an unknown span", missing, k.id)
					}
				}
			}
			if missing == len(records)-1 && lost > 0 {
				t.Fatalf("%d rows depend on the last record", lost)
			}
			// Later batches are stored completely.
			fill(t, table, batches[missing:missing+1])
			if got, err = scan(table.Source()); err != nil || got.spans() != whole.spans()-lost {
				t.Fatalf("after appending again: %d spans, %v, want %d", got.spans(), err, whole.spans()-lost)
			}
		}
	}
}

// TestReplayDamaged checks that damage is reported and readable rows are added.
func TestReplayDamaged(t *testing.T) {
	batches := benchBatches(t, 300, 100)
	records := fill(t, New(Options{}), batches)
	table := New(Options{})
	lost, err := table.Replay(records[0][:len(records[0])-1])
	if !errors.Is(err, rows.ErrCorrupt) || lost != 0 || table.Rows() != batches[0].Len()-1 {
		t.Errorf("truncated record: %d rows, %d lost, %v", table.Rows(), lost, err)
	}
	if _, err = table.Replay(rows.AppendItem(nil, rows.TagPosition, 0)); !errors.Is(err, rows.ErrCorrupt) {
		t.Errorf("truncated position: %v", err)
	}
	if lost, err = table.Replay(append(rows.AppendItem(nil, rows.TagRow, 1), 0)); lost != 1 || err != nil {
		t.Errorf("truncated row: %d lost, %v", lost, err)
	}
}

// TestReplayGaps checks that the memory for missing definitions is bounded.
func TestReplayGaps(t *testing.T) {
	table := New(Options{})
	var err error
	for id := uint32(1); err == nil && id < 1<<21; id += 1 << 15 {
		_, err = table.Replay(rows.AppendColumn(nil, id, rows.Column{Key: "k"}))
	}
	if !errors.Is(err, rows.ErrCorrupt) || len(table.tables.Columns) > 2*maxLost {
		t.Errorf("%d columns, %v", len(table.tables.Columns), err)
	}
}

// FuzzReplay checks that any bytes lead to an error or readable rows.
func FuzzReplay(f *testing.F) {
	records := fill(f, New(tight()), randomBatches(f, 1, 3))
	for i := range records {
		f.Add(records[i], records[0])
	}
	f.Add(rows.AppendWord(nil, 70000, 5, "w"), []byte{})
	f.Add(rows.AppendShape(nil, 3, 0, &rows.Shape{Columns: []uint32{9}}), []byte{0x80})
	batch := randomBatches(f, 2, 1)[0]
	f.Fuzz(func(t *testing.T, a, b []byte) {
		table := New(tight())
		for _, r := range [][]byte{a, b} {
			if _, err := table.Replay(r); err != nil && !errors.Is(err, rows.ErrCorrupt) {
				t.Fatalf("unexpected kind of error: %v", err)
			}
		}
		before := table.Rows()
		fill(t, table, []*otlpdata.Batch{batch})
		src := table.Source()
		infos, _ := src.Blocks()
		read := 0
		for i := range infos {
			open, err := src.Open(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			for row := range open.Len() {
				if _, err := open.Cells(nil, row); err != nil {
					t.Fatalf("visible row is unreadable: %v", err)
				}
				read++
			}
			if err := checkInfo(src, open, i, infos[i]); err != nil {
				t.Fatal(err)
			}
			open.Close()
		}
		if read != before+batch.Len() {
			t.Fatalf("%d rows read, want %d", read, before+batch.Len())
		}
	})
}
