package remotestore

import (
	"reflect"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// overTheWire encodes m and decodes it again.
func overTheWire[M proto.Message](t *testing.T, m, into M) M {
	t.Helper()
	b, err := proto.Marshal(m)
	if err == nil {
		err = proto.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatal(err)
	}
	return into
}

func TestNames(t *testing.T) {
	for _, names := range [][]string{nil, {"a", "ü"}, {"\xff", "a"}, {"\xfe", "\xff", "\uFFFD"}, {""}} {
		m := &storage_v2.GetServicesResponse{}
		m.Services = PutNames(m, names)
		if !slices.IsSorted(m.Services) || len(slices.Compact(slices.Clone(m.Services))) != len(m.Services) {
			t.Errorf("%q: others read %q", names, m.Services)
		}
		got := overTheWire(t, m, &storage_v2.GetServicesResponse{})
		if back := Names(got, got.Services); !slices.Equal(back, names) {
			t.Errorf("%q came back as %q", names, back)
		}
	}
	for _, name := range []string{"", "a", "\xff"} {
		m := &storage_v2.GetOperationsRequest{}
		m.Service = PutName(m, name)
		if got := overTheWire(t, m, &storage_v2.GetOperationsRequest{}); Name(got, got.Service) != name {
			t.Errorf("%q came back as %q", name, Name(got, got.Service))
		}
	}
}

func TestEdges(t *testing.T) {
	for _, edges := range [][]Edge{nil, {{Parent: "a", Child: "\xff", Messaging: true, Calls: 3, Errors: 2, Duration: 1 << 63}, {Calls: 1}}} {
		m := &storage_v2.GetDependenciesResponse{}
		PutEdges(m, edges)
		if got := Edges(overTheWire(t, m, &storage_v2.GetDependenciesResponse{})); !reflect.DeepEqual(got, edges) {
			t.Errorf("%+v came back as %+v", edges, got)
		}
	}
}

// FuzzExtensions reads arbitrary fields and checks that the result is not larger than the input.
func FuzzExtensions(f *testing.F) {
	m := &storage_v2.GetDependenciesResponse{}
	PutEdges(m, []Edge{{Parent: "a", Child: "b", Calls: 1}})
	f.Add([]byte(m.ProtoReflect().GetUnknown()))
	f.Add([]byte("\xc2\x3e\xff\xff\xff\xff\x7f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &storage_v2.GetDependenciesResponse{}
		m.ProtoReflect().SetUnknown(b)
		size := 0
		for _, e := range Edges(m) {
			size += len(e.Parent) + len(e.Child)
		}
		for _, n := range Names(m, nil) {
			size += len(n)
		}
		if size > 2*len(b) {
			t.Errorf("%d bytes became %d", len(b), size)
		}
	})
}
