package config

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// treeConfig is a configuration that keeps its tree.
type treeConfig struct {
	tree  map[string]any
	texts map[string]string
}

func (c *treeConfig) UnmarshalTree(tree map[string]any, texts map[string]string) error {
	c.tree, c.texts = tree, texts
	if _, ok := tree["panic"]; ok {
		panic("bug")
	}
	if _, ok := tree["wrong"]; ok {
		return errors.Join(pipeline.BadKey("wrong::0", "must be right"), yamltree.UnknownKey("block::levle", "levle", []string{"level"}))
	}
	return nil
}
func (c *treeConfig) GivenTree() map[string]any                      { return c.tree }
func (c *treeConfig) EffectiveTree() map[string]any                  { return c.tree }
func (c *treeConfig) TreeKeys() ([]yamltree.TreeKey, string)         { return nil, "" }
func (c *treeConfig) Consume(context.Context, *otlpdata.Batch) error { return nil }

// loadTree loads a file with an exporter whose block decodes itself.
func loadTree(t *testing.T, block string) (*treeConfig, error) {
	t.Helper()
	f := pipeline.Exporter("tree", func() treeConfig { return treeConfig{} },
		func(_ pipeline.Settings, c treeConfig) (*treeConfig, error) { return &c, nil })
	r := pipeline.Receiver("source", func() struct{} { return struct{}{} },
		func(pipeline.Settings, struct{}, pipeline.Consumer) (*treeSource, error) { return &treeSource{}, nil })
	text := "receivers: {source: }\nservice: {pipelines: {traces: {receivers: [source], exporters: [tree]}}}\nexporters:\n  tree:\n" + block
	c, err := Load(Options{Factories: []pipeline.Factory{f, r}, Files: []string{"f"},
		ReadFile:  func(string) ([]byte, error) { return []byte(text), nil },
		LookupEnv: func(name string) (string, bool) { return os.Getenv(name), name == "N" }})
	if err != nil {
		return nil, err
	}
	for _, m := range c.Sorted() {
		if m.Key.Kind == pipeline.KindExporter {
			return m.Value.(*treeConfig), nil
		}
	}
	t.Fatal("no exporter")
	return nil, nil
}

type treeSource struct{}

func (*treeSource) Start(context.Context) error { return nil }

// Scalars have the types of YAML 1.2, and the text of those that are not strings is passed too.
func TestTreeOfValues(t *testing.T) {
	t.Setenv("N", "007")
	got, err := loadTree(t, "    a: 1\n    b: 1.50\n    c: true\n    d: 'true'\n    e:\n"+
		"    f: [x, -2, 18446744073709551615]\n    g: ${N}\n    h: yes\n    i: 1e3\n    j: {k: $$1}\n")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": 1, "b": 1.5, "c": true, "d": "true", "e": nil, "f": []any{"x", -2, uint64(18446744073709551615)},
		"g": 7, "h": "yes", "i": 1000.0, "j": map[string]any{"k": "$1"}}
	if !reflect.DeepEqual(got.tree, want) {
		t.Errorf("got %v, want %v", got.tree, want)
	}
	if got.texts["b"] != "1.50" || got.texts["g"] != "007" || got.texts["f::1"] != "-2" || len(got.texts) != 7 {
		t.Errorf("texts %v", got.texts)
	}
}

// Mistakes that a configuration finds itself have the position of their key.
func TestTreeMistakes(t *testing.T) {
	for block, want := range map[string]string{
		"    wrong: [1]\n    block:\n      levle: 5\n": `f:5:13: exporters.tree.wrong.0: must be right` + "\n" +
			`f:7:7: exporters.tree.block: unknown key "levle"; did you mean "level"?`,
		"    panic: true\n": "exporters.tree: BUG: decoding the configuration panicked: bug",
		"    [a]\n":         "exporters.tree: must be a block of keys",
		"    a: ${NO}\n":    "f:5:8: exporters.tree.a: environment variable NO is not set; write ${NO:-default} for a default",
	} {
		if _, err := loadTree(t, block); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got\n%v\nwant\n%s", block, err, want)
		}
	}
}

// Components whose keys are unchanged are kept by a reload.
func TestTreesAreCompared(t *testing.T) {
	load := func(block string) *treeConfig {
		c, err := loadTree(t, block)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a := load("    {a: [1, {b: x}]}\n")
	if !Equal(a, load("    a:\n      - 1\n      - b: x # with a comment\n")) || Equal(a, load("    {a: [1, {b: y}]}\n")) {
		t.Error("wrong comparison")
	}
}
