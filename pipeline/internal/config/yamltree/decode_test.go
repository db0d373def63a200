package yamltree_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

type wait time.Duration

func (w *wait) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration", b)
	}
	*w = wait(d)
	return nil
}

// block is on when its key is there.
type block struct {
	on    bool
	value inner
}

func (b *block) TurnOn() any {
	b.on = true
	return &b.value
}

type inner struct {
	X int `yaml:"x"`
	Y int `yaml:"y"`
}

type shared struct {
	Shared string `yaml:"shared"`
}

type none struct{}

type everything struct {
	shared
	Text    string            `yaml:"text"`
	On      bool              `yaml:"on"`
	Int     int               `yaml:"int"`
	Small   int8              `yaml:"small"`
	Port    uint16            `yaml:"port"`
	Ratio   float64           `yaml:"ratio"`
	Wait    wait              `yaml:"wait"`
	Waits   []wait            `yaml:"waits"`
	List    []string          `yaml:"list"`
	Blocks  []inner           `yaml:"blocks"`
	Map     map[string]string `yaml:"map"`
	Maps    map[string]inner  `yaml:"maps"`
	Pointer *inner            `yaml:"pointer"`
	Inner   inner             `yaml:"inner"`
	Block   block             `yaml:"block"`
	None    none              `yaml:"none"`
	Hidden  string            `yaml:"-"`
	Odd     chan int          `yaml:"odd"`
}

func start() everything {
	return everything{Text: "default", Int: 7, List: []string{"d"}, Inner: inner{X: 1, Y: 2}, Block: block{value: inner{X: 3}}}
}

func TestDecode(t *testing.T) {
	f := func(yaml string, change func(e *everything)) {
		t.Helper()
		got, want := start(), start()
		if change != nil {
			change(&want)
		}
		if problems := read(t, "c:\n  e: {"+yaml+"}").Decode(&got, "c", "e"); len(problems) > 0 {
			t.Errorf("%s: %s", yaml, problems)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", yaml, got, want)
		}
	}
	f("", nil)
	f("text: ~, inner: null", nil)
	f("shared: s", func(e *everything) { e.Shared = "s" })
	f("text: 5", func(e *everything) { e.Text = "5" })
	f("text: ''", func(e *everything) { e.Text = "" })
	f(`text: "${YAML}"`, func(e *everything) { e.Text = "{a: [b, c]}" })
	f("on: true", func(e *everything) { e.On = true })
	f("int: -3, small: -128, port: 65535, ratio: 1e-3", func(e *everything) { e.Int, e.Small, e.Port, e.Ratio = -3, -128, 65535, 0.001 })
	f(`int: "${NUMBER}"`, func(e *everything) { e.Int = 42 })
	f("wait: 5s, waits: [1s, 2s]", func(e *everything) {
		e.Wait, e.Waits = wait(5*time.Second), []wait{wait(time.Second), wait(2 * time.Second)}
	})
	f("list: [a, 1]", func(e *everything) { e.List = []string{"a", "1"} })
	f("list: []", func(e *everything) { e.List = []string{} })
	f("list: ", nil)
	f("blocks: [{x: 1}, {y: 2}]", func(e *everything) { e.Blocks = []inner{{X: 1}, {Y: 2}} })
	f("map: {a: 1, b.c/d: x}", func(e *everything) { e.Map = map[string]string{"a": "1", "b.c/d": "x"} })
	f("maps: {a: {x: 1}, b: }", func(e *everything) { e.Maps = map[string]inner{"a": {X: 1}, "b": {}} })
	f("pointer: {y: 5}", func(e *everything) { e.Pointer = &inner{Y: 5} })
	f("inner: {y: 5}", func(e *everything) { e.Inner.Y = 5 })
	f("inner: ", nil)
	f("block: ", func(e *everything) { e.Block.on = true })
	f("block: {y: 4}", func(e *everything) { e.Block = block{true, inner{X: 3, Y: 4}} })
	f("block: ~", func(e *everything) { e.Block.on = true }) // as in YAML, null is the same as no value
	f("none: ", nil)
	f("none: {}", nil)
}

func TestDecodeProblems(t *testing.T) {
	f := func(yaml, want string) {
		t.Helper()
		e := start()
		problems := read(t, "c:\n  "+yaml).Decode(&e, "c")
		if got := problems.Error(); got != "1.yaml:2:"+want {
			t.Errorf("%s:\n got %s\nwant 1.yaml:2:%s", yaml, got, want)
		}
	}
	f("txt: 5", `3: c: unknown key "txt"; did you mean "text"?`)
	f("Hidden: 5", `3: c: unknown key "Hidden"; known: block, blocks, inner, int, list, map, maps, none, odd, on, pointer, port, ratio, `+
		`shared, small, text, wait, waits`)
	f("inner: {z: 5}", `11: c.inner: unknown key "z"; did you mean "x"?`)
	f("none: {z: 5}", `10: c.none: unknown key "z"`)
	f("inner: 5", `10: c.inner: must be a block of keys, not text: x, y`)
	f("inner: [5]", "10: c.inner: must be a block of keys, not a list: x, y")
	f("none: 5", `9: c.none: must be a block of keys, not text; the block has no keys`)
	f("text: [a]", "9: c.text: must be text")
	f("text: {a: b}", "9: c.text: must be text")
	f("text: ", "8: c.text: has no value; write one, or delete the line to use the default")
	f("on: yes", `7: c.on: "yes" is not true or false; write one of them, without quotes`)
	f("on: 'true'", `7: c.on: "true" is not true or false; write one of them, without quotes`)
	f("on: [true]", "7: c.on: must be true or false")
	f("int: 1.5", `8: c.int: "1.5" is not a whole number`)
	f("int: 0x10", `8: c.int: "0x10" is not a whole number`)
	f("int: 99999999999999999999", `8: c.int: "99999999999999999999" is out of range`)
	f("int: {}", "8: c.int: must be a number")
	f("int: ${NOPE}", "8: c.int: environment variable NOPE is not set; write ${NOPE:-default} for a default")
	f("small: 128", `10: c.small: "128" is out of range`)
	f("port: -1", `9: c.port: "-1" is not a whole number of 0 or more`)
	f("ratio: x", `10: c.ratio: "x" is not a number`)
	f("ratio: NaN", `10: c.ratio: "NaN" is not a number`)
	f("ratio: inf", `10: c.ratio: "inf" is not a number`)
	f("ratio: 1e999", `10: c.ratio: "1e999" is out of range`)
	f("wait: soon", `9: c.wait: "soon" is not a duration`)
	f("wait: [1s]", "9: c.wait: must be a single value")
	f("waits: [1s, 2]", `15: c.waits.1: "2" is not a duration`)
	f("waits: 1s", "10: c.waits: must be a list: [a, b]")
	f("list: {a: b}", "9: c.list: must be a list: [a, b]")
	f("list: [~]", "10: c.list.0: has no value; write one, or delete the line to use the default")
	f("blocks: [{x: 1}, {z: 5}]", `21: c.blocks.1: unknown key "z"; did you mean "x"?`)
	f("blocks: [{x: no}]", `16: c.blocks.0.x: "no" is not a whole number`)
	f("blocks: [5]", `12: c.blocks.0: must be a block of keys, not text: x, y`)
	f("map: [a]", "8: c.map: must be a map")
	f("map: a", "8: c.map: must be a map")
	f("map: {a: [b]}", "12: c.map.a: must be text")
	f("maps: {a: {z: 1}}", `14: c.maps.a: unknown key "z"; did you mean "x"?`)
	f("pointer: 5", `12: c.pointer: must be a block of keys, not text: x, y`)
	f("block: 5", `10: c.block: must be a block of keys, not text: x, y`)
	f("odd: 5", "8: c.odd: BUG: config field of unsupported type chan int")
}

// A wrong value in an override is reported there, not where the key was first given.
func TestDecodePointsAtTheOverride(t *testing.T) {
	flag := yamltree.Source{Name: "--set c.on=5", YAML: []byte("5"), Path: []string{"c", "on"}}
	sources := append(files("c: {int: 1}", "c: {text: x}", "c:\n  int: no"), flag)
	tree, _ := yamltree.Load(sources, outside())
	var e everything
	problems := tree.Decode(&e, "c")
	problems.Sort()
	want := "3.yaml:2:8: c.int: \"no\" is not a whole number\n" +
		"--set c.on=5: c.on: \"5\" is not true or false; write one of them, without quotes"
	if problems.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", problems, want)
	}
}

func TestSuggest(t *testing.T) {
	f := func(word, want string, candidates ...string) {
		t.Helper()
		if got := yamltree.Suggest(word, candidates, "known"); got != want {
			t.Errorf("%s of %s: got %q, want %q", word, candidates, got, want)
		}
	}
	f("endpont", `; did you mean "endpoint"?`, "timeout", "endpoint")
	f("recievers", `; did you mean "receivers"?`, "exporters", "receivers")
	f("zipkn", "; known: batch, otlp", "otlp", "batch")
	f("x", "")
	f("ab", `; did you mean "aa"?`, "ac", "aa") // the first of equals
	f("", `; did you mean "a"?`, "a")
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf("component%04d", i)
	}
	f("zz", "; known: component0000, component0001, component0002, component0003, component0004, component0005, component0006, "+
		"component0007, component0008, component0009, component0010, component0011, component0012, component0013, component0014, "+
		"component0015, component0016, component0017, component0018, component0019 and 980 more", many...)
}
