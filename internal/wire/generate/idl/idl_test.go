package idl_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/internal/wire/generate/idl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const everything = `// The file.
namespace go pkg
namespace java a.b.C
include "other.thrift"

// Two lines
// above.
const string NAME = "value"

// Not above.

enum E {
  // One.
  ONE = 1,
  HEX = 0x10
}
// A struct.
struct S {
  1: required i64 a; 2: optional list<other.T> b
  // Third.
  3: bool c = false
}
service Sv {
  // A method.
  oneway void m(1: S s, 2: string t)
  list<S> n()
}
`

func TestParse(t *testing.T) {
	got, err := idl.Parse("f.thrift", everything)
	if err != nil {
		t.Fatal(err)
	}
	want := &idl.File{
		Doc:        []string{"The file."},
		Namespaces: map[string]string{"go": "pkg", "java": "a.b.C"},
		Includes:   []string{"other.thrift"},
		Consts:     []idl.Const{{Doc: []string{"Two lines", "above."}, Name: "NAME", Value: "value"}},
		Enums: []idl.Enum{{Name: "E", Values: []idl.EnumValue{
			{Doc: []string{"One."}, Name: "ONE", Number: 1}, {Name: "HEX", Number: 16}}}},
		Structs: []idl.Struct{{Doc: []string{"A struct."}, Name: "S", Fields: []idl.Field{
			{ID: 1, Requiredness: idl.Required, Type: idl.Type{Name: "i64"}, Name: "a"},
			{ID: 2, Requiredness: idl.Optional, Type: idl.Type{Name: "other.T", List: true}, Name: "b"},
			{Doc: []string{"Third."}, ID: 3, Type: idl.Type{Name: "bool"}, Name: "c", HasDefault: true},
		}}},
		Services: []idl.Service{{Name: "Sv", Methods: []idl.Method{
			{Doc: []string{"A method."}, Name: "m", Oneway: true, Result: idl.Type{Name: "void"},
				Args: idl.Struct{Name: "m", Fields: []idl.Field{
					{ID: 1, Type: idl.Type{Name: "S"}, Name: "s"}, {ID: 2, Type: idl.Type{Name: "string"}, Name: "t"}}}},
			{Name: "n", Result: idl.Type{Name: "S", List: true}, Args: idl.Struct{Name: "n"}},
		}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestSyntaxErrors(t *testing.T) {
	for src, want := range map[string]string{
		"struct":                                 `f:1:7: the end of the file where Ident was expected`,
		"struct S { 1: i64 a":                    `f:1:20: the end of the file where Int was expected`,
		"struct S {\n1: i64 a\n1: i64 b }":       `f:3:1: "1" where a number of its own from 1 to 63 was expected`,
		"struct S { 0: i64 a }":                  `f:1:12: "0" where a number of its own from 1 to 63 was expected`,
		"struct S { 64: i64 a }":                 `f:1:12: "64" where a number of its own from 1 to 63 was expected`,
		"struct S { 99999: i64 a }":              `f:1:12: "99999" where a number of 16 bits was expected`,
		"struct S { 1: map<i64, i64> a }":        `"<" where Ident was expected`,
		"struct S { 1: list<list<i64>> a }":      `"<" where ">" was expected`,
		"struct S { 1: i64 a = 7 }":              `"7" where false or 0 was expected`,
		"const i32 A = 1":                        `"i32" where string was expected`,
		"union U { }":                            `f:1:1: "union" where a declaration was expected`,
		"{":                                      `f:1:1: "{" where a declaration was expected`,
		"include \"a":                            `f:1:9: literal not terminated`,
		"service S { void m() throws (1: E e) }": `"(" where Ident was expected`,
	} {
		f, err := idl.Parse("f", src)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v, %+v\nwant %s", src, err, f, want)
		}
	}
}

// Any text is a file or an error.
func FuzzParse(f *testing.F) {
	f.Add(everything)
	names, _ := filepath.Glob("../../thrift/*.thrift")
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	f.Fuzz(func(t *testing.T, src string) {
		if f, err := idl.Parse("f", src); (f == nil) == (err == nil) {
			t.Errorf("got %v, %v", f, err)
		}
	})
}
