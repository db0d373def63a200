package segment

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// TestCatalog compares the catalog, from the section and without it, with the rows.
func TestCatalog(t *testing.T) {
	for seed := range uint64(20) {
		seg, _ := writeSample(t, randomSample(t, seed, 30), 20)
		want := servicesOf(t, seg)
		for range 2 { // read, then cached
			if got, err := seg.Services(); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: %+v, %v; want %+v", seed, got, err, want)
			}
		}
		seg.dir[kindCatalog], seg.catalog = entry{}, cached[catalog]{}
		if got, err := seg.Services(); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d, without the section: %+v, %v; want %+v", seed, got, err, want)
		}
	}
}

// servicesOf returns the services of all rows.
func servicesOf(t *testing.T, seg *Segment) []source.Service {
	t.Helper()
	tables, err := seg.Tables()
	if err != nil {
		t.Fatal(err)
	}
	found := map[rows.Service]*source.Service{}
	for i := range seg.Info().Blocks {
		b, err := seg.Open(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		shapes, err := b.Shapes()
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range shapes {
			sh := &tables.Shapes[id]
			of := rows.Service{Tenant: sh.Tenant, Name: sh.Service}
			if found[of] == nil {
				found[of] = &source.Service{Tenant: of.Tenant, Name: of.Name}
			}
			op := source.Operation{Name: sh.Name, Kind: sh.Kind}
			if s := found[of]; sh.NameInRow {
				s.NamesInRows = true
			} else if !slices.Contains(s.Operations, op) {
				s.Operations = append(s.Operations, op)
			}
		}
		b.Close()
	}
	var out []source.Service
	for _, s := range found {
		slices.SortFunc(s.Operations, source.Operation.Compare)
		out = append(out, *s)
	}
	slices.SortFunc(out, source.Service.Compare)
	return out
}

// TestFileWithoutCatalog checks that a file without a catalog is valid, and that its names come
// from the tables.
func TestFileWithoutCatalog(t *testing.T) {
	b, err := os.ReadFile("testdata/v1-before-catalog.segment")
	if err != nil {
		t.Fatal(err)
	}
	old, now := openTest(t, put(t, b), "s"), openTest(t, put(t, readGolden(t)), "s")
	if err := old.Verify(t.Context(), func(part string, err error) {
		if err != nil {
			t.Errorf("%s: %v", part, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	got, err := old.Services()
	want, wantErr := now.Services()
	if err != nil || wantErr != nil || len(got) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v, %v", got, err, want, wantErr)
	}
}

// manyServices returns tables with one service per shape.
func manyServices(n int) *rows.Tables {
	t := &rows.Tables{}
	for i := range n {
		t.Shapes = append(t.Shapes, rows.Shape{Service: fmt.Sprint("service ", i), Name: "n"})
	}
	return t
}

// TestCatalogLimits checks that a catalog that is too large is neither written nor read.
func TestCatalogLimits(t *testing.T) {
	for n, want := range map[int]bool{maxCatalogNames / 2: true, maxCatalogNames/2 + 1: false} {
		c := catalogOf(manyServices(n))
		if c.fits() != want {
			t.Errorf("%d services fit: %t", n, !want)
		}
		if _, err := readCatalog(c.append(nil)); (err == nil) != want {
			t.Errorf("%d services: %v", n, err)
		}
	}
	w := sectionWriter{}
	if w.catalog(manyServices(maxCatalogNames)); w.entries != nil || w.err != nil {
		t.Error("section was written")
	}
}

// TestCatalogMemory checks that catalogs use at most their share of the cache, and that Close
// releases them.
func TestCatalogMemory(t *testing.T) {
	_, fs := writeSample(t, randomSample(t, 3, 30), 20)
	cache := NewCache(1 << 20)
	open := func() *Segment {
		s, err := OpenCached(fs, "s", cache)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := open()
	if _, err := first.Services(); err != nil || first.catalog.value.Load() == nil {
		t.Fatal("catalog not cached", err)
	}
	held := cache.Memory()
	if held != first.catalog.value.Load().memory {
		t.Errorf("cache accounts for %d bytes", held)
	}
	cache.limit = held * pinnedShare
	second := open()
	if list, err := second.Services(); err != nil || len(list) == 0 || second.catalog.value.Load() != nil {
		t.Errorf("%d services, %v; cached beyond the limit: %t", len(list), err, second.catalog.value.Load() != nil)
	}
	if err := first.Close(); err != nil || cache.Memory() != 0 {
		t.Errorf("%v, cache still accounts for %d bytes", err, cache.Memory())
	}
	if _, err := second.Services(); err != nil || second.catalog.value.Load() == nil {
		t.Error("catalog not cached although it fits", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzCatalog checks that any bytes lead to an error or a catalog that round-trips.
func FuzzCatalog(f *testing.F) {
	f.Add(newCatalog(nil).append(nil))
	f.Add(catalogOf(manyServices(3)).append(nil))
	f.Add([]byte{1, 0, 1, 'a', 1, 2, 1, 'x', 2, 1, 'y', 4})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := readCatalog(b)
		if err != nil {
			return
		}
		again, err := readCatalog(c.append(nil))
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%+v, %v; want %+v", again, err, c)
		}
	})
}

// TestCatalogRejectsInvalid checks that invalid catalogs are rejected.
func TestCatalogRejectsInvalid(t *testing.T) {
	for name, b := range map[string][]byte{
		"service twice":   {2, 0, 1, 'a', 0, 0, 0, 1, 'a', 0, 0},
		"operation twice": {1, 0, 1, 'a', 0, 2, 1, 'x', 2, 1, 'x', 2},
		"cut short":       {1, 0, 1, 'a', 0},
		"too long":        {1, 0, 1, 'a', 0, 0, 7},
		"too many":        {9, 0, 1, 'a', 0, 0},
	} {
		if _, err := readCatalog(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
