package namelist

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// name is an element of the lists of a test.
type name struct {
	tenant, service, operation, kind string
	missing                          bool
}

func compareNames(a, b name) int {
	return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.service, b.service), cmp.Compare(a.operation, b.operation),
		cmp.Compare(a.kind, b.kind))
}

// randomNames returns sorted names of bytes that are special in keys, with repetitions.
func randomNames(seed uint64, n int) (services, operations []name) {
	r := rand.New(rand.NewPCG(seed, 1))
	text := func() string {
		var b []byte
		for range r.IntN(4) {
			b = append(b, "\x00\x01\xffab"[r.IntN(5)])
		}
		return string(b)
	}
	for range n {
		s := name{tenant: text(), service: text()}
		s.missing = len(s.service)%2 == 1
		services = append(services, s)
		for range r.IntN(3) {
			operations = append(operations, name{s.tenant, s.service, text(), kindTexts[r.IntN(len(kindTexts))], false})
		}
	}
	slices.SortFunc(services, compareNames)
	slices.SortFunc(operations, compareNames)
	return services, operations
}

// stored is lists whose pages are in buffers, as if in files. It counts pages that were read.
type stored struct {
	*Lists
	services, operations []byte
	pages                int
}

func build(t testing.TB, services, operations []name) *stored {
	t.Helper()
	var b Builder
	for _, s := range services {
		b.Service(s.tenant, s.service, s.missing)
	}
	for _, o := range operations {
		if !b.Operation(o.tenant, o.service, o.operation, o.kind) {
			t.Fatalf("%+v does not fit", o)
		}
	}
	s := &stored{}
	var directory []byte
	s.services, s.operations, directory = b.Finish()
	var err error
	if s.Lists, err = Open(directory, int64(len(s.services)), int64(len(s.operations))); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(s.services, s.operations); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stored) read(b []byte) Read {
	return func(offset int64, length int) ([]byte, error) {
		s.pages++
		return b[offset:][:length], nil
	}
}

// TestLists compares lists from any name on with what was added.
func TestLists(t *testing.T) {
	for seed := range uint64(20) {
		services, operations := randomNames(seed, 300)
		s := build(t, services, operations)
		for _, at := range append(services, name{}, name{tenant: "a", service: "b\x00"}, name{tenant: "zz"}) {
			var got, want []name
			for _, x := range services {
				if x.tenant == at.tenant && x.service >= at.service {
					want = append(want, x)
				}
			}
			err := s.EachService(s.read(s.services), at.tenant, at.service, func(n []byte, missing bool) bool {
				got = append(got, name{tenant: at.tenant, service: string(n), missing: missing})
				return true
			})
			if want = slices.Compact(want); err != nil || !slices.Equal(got, want) {
				t.Fatalf("seed %d: services from %+v: %+v, %v; want %+v", seed, at, got, err, want)
			}
			got, want = nil, nil
			for _, x := range operations {
				if x.tenant == at.tenant && x.service == at.service && x.operation >= "a" {
					want = append(want, x)
				}
			}
			err = s.EachOperation(s.read(s.operations), at.tenant, at.service, "a", func(n []byte, kind string) bool {
				got = append(got, name{at.tenant, at.service, string(n), kind, false})
				return true
			})
			if want = slices.Compact(want); err != nil || !slices.Equal(got, want) {
				t.Fatalf("seed %d: operations of %+v: %+v, %v; want %+v", seed, at, got, err, want)
			}
		}
	}
}

// TestListsReadFewPages checks that a part of a long list is found with one or two pages, and that
// the directory is small.
func TestListsReadFewPages(t *testing.T) {
	const many = 50_000
	var services []name
	for i := range many {
		services = append(services, name{tenant: "large", service: fmt.Sprintf("service-%08x", i)})
	}
	services = append(services, name{tenant: "small", service: "one"})
	s := build(t, services, nil)
	if n := len(s.Lists.services.list); n < 20 || s.Memory() > int64(len(s.services))/20 {
		t.Fatalf("%d pages of %d bytes, %d bytes of memory", n, len(s.services), s.Memory())
	}
	for i := 0; i < many; i += 997 {
		s.pages = 0
		prefix, found := services[i].service[:len("service-")+6], 0
		err := s.EachService(s.read(s.services), "large", prefix, func(name []byte, _ bool) bool {
			if strings.HasPrefix(string(name), prefix) {
				found++
				return true
			}
			return false
		})
		if err != nil || found == 0 || s.pages > 2 {
			t.Errorf("%d names with prefix %s in %d pages, %v", found, prefix, s.pages, err)
		}
	}
	s.pages = 0
	if err := s.EachService(s.read(s.services), "small", "", func([]byte, bool) bool { return true }); err != nil || s.pages > 1 {
		t.Errorf("services of the other tenant: %d pages, %v", s.pages, err)
	}
}

// TestOf checks lists of services that a vocabulary has, with the names that are shown.
func TestOf(t *testing.T) {
	l := Of([]source.Service{{Tenant: "t", Name: "s", NamesInRows: true,
		Operations: []source.Operation{{Name: "", Kind: 3}, {Name: "a", Kind: 2}}}})
	var got []string
	err := errors.Join(l.EachService(nil, "t", "", func(name []byte, missing bool) bool {
		got = append(got, fmt.Sprintf("%s %t", name, missing))
		return true
	}), l.EachOperation(nil, "t", "s", "", func(name []byte, kind string) bool {
		got = append(got, fmt.Sprintf("%s %s", name, kind))
		return true
	}))
	slices.Sort(got)
	if err != nil || len(got) != 3 || !slices.Contains(got, "s true") || !slices.Contains(got, "a server") {
		t.Errorf("%q, %v", got, err)
	}
}

// TestLongNames checks that names that do not fit into a page are reported.
func TestLongNames(t *testing.T) {
	var b Builder
	long := strings.Repeat("x", maxKey)
	if b.Operation("", "s", long, "") || b.Operation("", "s", "o", "no kind") || !b.Operation("", "s", "o", "client") {
		t.Error("wrong operations fit")
	}
	if b.Service("", "s", false); b.Unlisted() {
		t.Error("short name left out")
	}
	if b.Service("", long, false); !b.Unlisted() {
		t.Error("long name not reported")
	}
}

// TestDamagedLists flips each bit of small lists. No name is wrong: damage is an error, or hides in
// keys of the directory that lead to a page with the same names.
func TestDamagedLists(t *testing.T) {
	services, operations := randomNames(7, 30)
	sound := build(t, services, operations)
	for i := range 8 * len(sound.services) {
		pages := bytes.Clone(sound.services)
		pages[i/8] ^= 1 << (i % 8)
		if err := sound.EachService(sound.read(pages), "", "", func([]byte, bool) bool { return true }); err == nil {
			t.Errorf("bit %d of the pages: no error", i)
		}
		if err := sound.Verify(pages, sound.operations); err == nil {
			t.Errorf("bit %d of the pages: not found by Verify", i)
		}
	}
}

// FuzzLists checks that any bytes lead to an error or to lists that can be read.
func FuzzLists(f *testing.F) {
	services, operations := randomNames(1, 20)
	var b Builder
	for _, s := range services {
		b.Service(s.tenant, s.service, s.missing)
	}
	for _, o := range operations {
		b.Operation(o.tenant, o.service, o.operation, o.kind)
	}
	p, o, directory := b.Finish()
	f.Add(directory, p, o)
	f.Add([]byte{0, 0}, []byte{}, []byte{})
	f.Add([]byte{1, 8, 3, 0, 1, 0, 0}, []byte{0, 0, 0, 0, 0, 3, 0, 1}, []byte{})
	f.Fuzz(func(t *testing.T, directory, services, operations []byte) {
		l, err := Open(directory, int64(len(services)), int64(len(operations)))
		if err != nil {
			return
		}
		sound := l.Verify(services, operations) == nil
		read := func(b []byte) Read {
			return func(offset int64, length int) ([]byte, error) { return b[offset:][:length], nil }
		}
		for _, tenant := range []string{"", "a"} {
			last := ""
			err := l.EachService(read(services), tenant, "", func(name []byte, _ bool) bool {
				if sound && string(name) < last {
					t.Errorf("%q after %q", name, last)
				}
				last = string(name)
				return true
			})
			_ = err // damage
			_ = l.EachOperation(read(operations), tenant, "a", "", func([]byte, string) bool { return true })
		}
	})
}
