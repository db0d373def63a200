package segment

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// readAllNames reads the names of all tenants of samples, and returns the errors of reading
// services and operations.
func readAllNames(s *Segment) (services, operations error) {
	for _, tenant := range []string{"", "a", "b"} {
		services = cmp.Or(services, s.EachService(tenant, "", func([]byte, bool) bool { return true }))
		operations = cmp.Or(operations, s.EachOperation(tenant, "a", "", func([]byte, string) bool { return true }))
	}
	return services, operations
}

// listedNames is services with their operations. An operation without a name stands for those in
// rows.
type listedNames map[rows.Service]map[tracestore.Operation]bool

func (n listedNames) add(of rows.Service, op tracestore.Operation) {
	if n[of] == nil {
		n[of] = map[tracestore.Operation]bool{}
	}
	n[of][op] = true
}

// namesOf returns the names that a segment lists for some tenants, and checks their order.
func namesOf(t *testing.T, s *Segment, tenants map[string]bool) listedNames {
	t.Helper()
	out := listedNames{}
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for tenant := range tenants {
		var services []string
		missing := map[string]bool{}
		check(s.EachService(tenant, "", func(name []byte, lacks bool) bool {
			services = append(services, string(name))
			missing[string(name)] = lacks
			return true
		}))
		if !slices.IsSorted(services) {
			t.Errorf("services %q", services)
		}
		for _, service := range services {
			of := rows.Service{Tenant: tenant, Name: service}
			if missing[service] {
				out.add(of, tracestore.Operation{})
			}
			var last tracestore.Operation
			check(s.EachOperation(tenant, service, "", func(name []byte, kind string) bool {
				op := tracestore.Operation{Name: string(name), Kind: kind}
				if cmp.Or(cmp.Compare(last.Name, op.Name), cmp.Compare(last.Kind, op.Kind)) >= 0 {
					t.Errorf("operation %+v after %+v", op, last)
				}
				last = op
				out.add(of, op)
				return true
			}))
		}
	}
	return out
}

// namesOfRows returns the names of all rows.
func namesOfRows(t *testing.T, seg *Segment) (listedNames, map[string]bool) {
	t.Helper()
	tables, err := seg.Tables()
	if err != nil {
		t.Fatal(err)
	}
	out, tenants := listedNames{}, map[string]bool{}
	for i := range seg.Info().Blocks {
		b, err := seg.Open(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		shapes, err := b.Shapes()
		if err != nil {
			t.Fatal(err)
		}
		for row, id := range shapes {
			sh := &tables.Shapes[id]
			name := sh.Name
			if at := slices.IndexFunc(sh.Columns, func(c uint32) bool { return tables.Columns[c].Place == rows.Name }); sh.NameInRow && at >= 0 {
				c, err := b.Cell(row, at)
				if err != nil {
					t.Fatal(err)
				}
				name = tables.Text(sh.Columns[at], c)
			}
			s := otlpdata.Span{Name: name, Kind: sh.Kind}
			tenants[sh.Tenant] = true
			out.add(rows.Service{Tenant: sh.Tenant, Name: sh.Service}, tracestore.Operation{Name: s.Operation(), Kind: s.KindName()})
		}
		b.Close()
	}
	return out, tenants
}

// TestCatalog compares the lists of names with the rows, and the names in a file without lists with
// its vocabulary.
func TestCatalog(t *testing.T) {
	for seed := range uint64(20) {
		seg, _ := writeSample(t, randomSample(t, seed, 30), 20)
		if seg.dir[kindNameDirectory].kind == 0 {
			t.Fatal("segment has no lists")
		}
		want, tenants := namesOfRows(t, seg)
		for range 2 { // read, then cached
			if got := namesOf(t, seg, tenants); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: %+v; want %+v", seed, got, want)
			}
		}
		seg.dir[kindNameDirectory], seg.catalog = entry{}, cached[catalog]{}
		for of, ops := range namesOf(t, seg, tenants) {
			missing := ops[tracestore.Operation{}]
			delete(ops, tracestore.Operation{})
			if !missing && !maps.Equal(ops, want[of]) {
				t.Fatalf("seed %d, without lists: %v has %+v; want %+v", seed, of, ops, want[of])
			}
			for op := range ops {
				if !want[of][op] {
					t.Fatalf("seed %d, without lists: %v has %+v", seed, of, op)
				}
			}
		}
	}
}

// TestCatalogMemory checks that the cache accounts for the directory of names, and that Drop and
// Close release it.
func TestCatalogMemory(t *testing.T) {
	_, fs := writeSample(t, randomSample(t, 3, 30), 20)
	cache := NewCache(1 << 20)
	s, err := OpenCached(fs, "s", cache)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err, _ := readAllNames(s); err != nil || s.catalog.value.Load() == nil {
			t.Fatal("directory of names not cached", err)
		}
		if held := cache.Memory(); held != s.catalog.value.Load().Memory() {
			t.Errorf("cache accounts for %d bytes", held)
		}
		if s.Drop(); s.catalog.value.Load() != nil {
			t.Error("directory of names not dropped")
		}
	}
	if err := s.Close(); err != nil || cache.Memory() != 0 {
		t.Errorf("%v, cache still accounts for %d bytes", err, cache.Memory())
	}
}
