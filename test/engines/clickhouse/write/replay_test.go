package write

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

// The same batch counts once, in tables and views: when it is sent twice, by two exporters at the
// same time, and when the response to an insert is lost.
func TestReplay(t *testing.T) {
	eachProtocol(t, func(f *fixture) {
		one, two := f.start(), f.start()
		b, other := spansOf(f, 500, 1, soon), spansOf(f, 500, 10_001, soon)
		f.must(one, b)
		want := f.counts()
		f.must(one, b)
		f.must(two, b)
		if got := f.counts(); got != want {
			f.Fatalf("after the same batch again:\n%s\nbefore:\n%s", got, want)
		}
		var both errgroup.Group
		for _, e := range []*exporter{one, two, one, two} {
			both.Go(func() error { return e.Consume(context.Background(), other) })
		}
		if err := both.Wait(); err != nil {
			f.Fatal(err)
		}
		want = f.counts()
		f.must(one, other)
		if got := f.counts(); got != want {
			f.Fatalf("after a batch that two exporters sent at the same time:\n%s\nbefore:\n%s", got, want)
		}
		if got := f.query("SELECT count() FROM {db}.spans"); got != "1000" {
			f.Errorf("%s spans, want 1000", got)
		}
	})
}

// An insert whose connection ends after the server has executed it is stored once.
func TestCutAfterInsert(t *testing.T) {
	for _, table := range []string{"payload", "spans"} {
		t.Run(table, func(t *testing.T) {
			eachProtocol(t, func(f *fixture) {
				e, b := f.start(), spansOf(f, 100, 1, soon)
				f.server.Inject(f.T, engine.Fault{Match: "^INSERT INTO .*" + table, After: true, Cut: true})
				defer f.server.Heal(f.T)
				err := e.Consume(context.Background(), b)
				if err == nil || !pipeline.IsTemporary(err) {
					f.Fatalf("with a cut connection: %v", err)
				}
				f.must(e, b)
				want := f.counts()
				f.must(e, b)
				if got := f.counts(); got != want || f.query("SELECT count() FROM {db}.spans") != "100" {
					f.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		})
	}
}

// A batch that is resent after the server was killed is stored once.
func TestReplayAfterKill(t *testing.T) {
	s := engine.Start(t, engine.Options{})
	f := &fixture{T: t, server: s, database: s.Database(t), protocol: "http"}
	e, b := f.start(), spansOf(t, 2000, 1, soon)
	f.must(e, b)
	want := f.counts()
	s.Kill()
	if err := e.Consume(context.Background(), b); err == nil || !pipeline.IsTemporary(err) {
		t.Fatalf("without a server: %v", err)
	}
	s.Restart(t)
	f.must(e, b)
	if got := f.counts(); got != want {
		t.Errorf("after a kill:\n%s\nbefore:\n%s", got, want)
	}
}

// A server that is killed after it has recorded the token of an insert, but before it has published
// the rows, remembers the token without the rows. A batch that is resent is stored all the
// same.
func TestForgottenRows(t *testing.T) {
	for _, table := range []string{"payload", "spans"} {
		t.Run(table, func(t *testing.T) {
			s := engine.Start(t, engine.Options{})
			f := &fixture{T: t, server: s, database: s.Database(t), protocol: "native"}
			e, b := f.start(), spansOf(t, 500, 1, soon)
			f.must(e, b)
			folder := f.query("SELECT data_paths[1] FROM system.tables WHERE database || '.' || name = '{db}." + table + "'")
			s.Kill()
			removeParts(t, folder)
			s.Restart(t)
			if got := f.query("SELECT count() FROM {db}." + table); got != "0" {
				t.Fatalf("%s rows without parts", got)
			}
			for range 2 {
				f.must(e, b)
				if got := f.query("SELECT count() FROM {db}." + table); got != "500" {
					t.Errorf("%s rows, want 500", got)
				}
			}
		})
	}
}

// A lease whose latest term the server remembers without its row goes to one of the collectors that
// want it.
func TestForgottenLease(t *testing.T) {
	s := engine.Start(t, engine.Options{})
	f := &fixture{T: t, server: s, database: s.Database(t), protocol: "native"}
	stores := []sampling.LeaseStore{f.start().Consumer.(sampling.LeaseStore), f.start().Consumer.(sampling.LeaseStore)}
	if l, err := stores[0].Lease(t.Context(), "lead", "a", time.Hour); err != nil || l.Owner != "a" {
		t.Fatalf("lease %+v, %v", l, err)
	}
	folder := f.query("SELECT data_paths[1] FROM system.tables WHERE database || '.' || name = '{db}.sampling_leases'")
	s.Kill()
	removeParts(t, folder)
	s.Restart(t)
	owners := make([]string, len(stores))
	var all errgroup.Group
	for i, store := range stores {
		all.Go(func() error {
			l, err := store.Lease(t.Context(), "lead", string(rune('b'+i)), time.Hour)
			owners[i] = l.Owner
			return err
		})
	}
	if err := all.Wait(); err != nil || owners[0] == "" || owners[0] != owners[1] {
		t.Errorf("owners %q, %v", owners, err)
	}
}

// removeParts deletes the rows of a table whose server does not run. Its log of tokens stays.
func removeParts(t *testing.T, folder string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	removed := 0
	for _, entry := range entries {
		if !entry.IsDir() || strings.HasPrefix(entry.Name(), "detached") || strings.HasPrefix(entry.Name(), "deduplication") {
			continue
		}
		if err := os.RemoveAll(filepath.Join(folder, entry.Name())); err != nil {
			t.Fatal(err)
		}
		removed++
	}
	if removed == 0 {
		t.Fatalf("no parts in %s", folder)
	}
}
