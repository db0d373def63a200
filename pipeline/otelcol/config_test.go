package otelcol_test

import (
	"bytes"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/processor"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
	"github.com/tracing-backend/tracing/pipeline/otelcol"
)

// run runs a command of the program and returns its output and messages.
func run(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, messages bytes.Buffer
	app.Run(t.Context(), args, &out, &messages, tracing.Components(), tracing.Presets()...)
	return out.String(), messages.String()
}

// Each mistake is reported at its line and in words of this program.
func TestMistakes(t *testing.T) {
	_, messages := run(t, "validate", "--config", "testdata/mistakes.yaml")
	golden.Check(t, "testdata/mistakes.golden", messages)
}

// A printed configuration has no secrets, and loads again with the same result.
func TestPrint(t *testing.T) {
	plain, messages := run(t, "print-config", "--config", "testdata/print.yaml")
	if messages != "" {
		t.Error(messages)
	}
	all, _ := run(t, "print-config", "--config", "testdata/print.yaml", "--origin", "--defaults")
	_, all, _ = strings.Cut(all, "\nprocessors:")
	all, _, _ = strings.Cut(all, "\nexporters:")
	golden.Check(t, "testdata/print.golden", plain+"\nprocessors:"+all)
	if strings.Contains(plain+all, "a-secret") || strings.Contains(plain+all, "password") {
		t.Error("secret printed")
	}
	file := t.TempDir() + "/again.yaml"
	withSecret := strings.ReplaceAll(plain, "'***'", "a-secret-of-more-than-thirty-two-bytes")
	if err := os.WriteFile(file, []byte(withSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, messages := run(t, "print-config", "--config", file); again != plain || messages != "" {
		t.Errorf("got\n%s\nwant\n%s\n%s", again, plain, messages)
	}
}

func TestComponentsCommand(t *testing.T) {
	out, _ := run(t, "components", "groupbytrace")
	golden.Check(t, "testdata/components.golden", out)
}

type probeBlock struct {
	Level int `mapstructure:"level"`
}

type probeInner struct {
	Name    string                         `mapstructure:"name"`
	Inner   map[string]configopaque.String `mapstructure:"inner"`
	Pairs   configopaque.MapList           `mapstructure:"pairs"`
	Keys    []configopaque.String          `mapstructure:"keys"`
	Numbers []probeBlock                   `mapstructure:"numbers"`
}

// probeConfig has fields of all kinds that configurations of the Collector have.
type probeConfig struct {
	probeInner `mapstructure:",squash"`
	Texts      []string                            `mapstructure:"texts"`
	Headers    configopaque.MapList                `mapstructure:"headers"`
	Token      configopaque.String                 `mapstructure:"token"`
	Optional   configoptional.Optional[probeBlock] `mapstructure:"optional"`
	Given      configoptional.Optional[probeBlock] `mapstructure:"given"`
	Pointer    *probeBlock                         `mapstructure:"pointer"`
	Blocks     map[string]probeBlock               `mapstructure:"blocks"`
	ID         *component.ID                       `mapstructure:"id"`
	Any        any                                 `mapstructure:"any"`
	Ratio      float64                             `mapstructure:"ratio"`
	Hidden     func()                              `mapstructure:"-"`
	Rest       map[string]any                      `mapstructure:",remain"`
}

func probe() pipeline.Factory {
	return otelcol.Processor(processor.NewFactory(component.MustNewType("probe"), func() component.Config {
		return &probeConfig{Token: "default-secret", Given: configoptional.Some(probeBlock{Level: 3}), Ratio: 0.5}
	}, processor.WithTraces(createNothing, component.StabilityLevelStable)))
}

func TestKeys(t *testing.T) {
	keys, address := probe().Defaults().(yamltree.TreeConfig).TreeKeys()
	var got []string
	for _, k := range keys {
		got = append(got, strings.TrimSpace(k.Path+": "+k.Type+" "+k.Default))
	}
	want := []string{
		"name: string", "inner: map of secrets", "pairs: list of maps", "pairs[].name: string", "pairs[].value: secret",
		"keys: list of secrets", "numbers: list of maps", "numbers[].level: integer",
		"texts: list of strings", "headers: list of maps", "headers[].name: string", "headers[].value: secret",
		"token: secret ***", "optional: optional map", "optional.level: integer",
		"given: optional map", "given.level: integer 3", "pointer: map", "pointer.level: integer",
		"blocks: map of maps", "blocks.<name>.level: integer", "id: string", "any: any", "ratio: number 0.5",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if address != "https://pkg.go.dev/github.com/tracing-backend/tracing/pipeline/otelcol_test" {
		t.Error(address)
	}
}

// Secrets are masked where they are, and where the tree has another shape than the configuration.
func TestSecretsAreMasked(t *testing.T) {
	for name, block := range map[string]string{
		"text":   `token: geheim`,
		"a list": `headers: [{name: authorization, value: geheim}]`,
		"a map":  `headers: {authorization: geheim}`,

		"an embedded map":            `inner: {authorization: geheim}`,
		"an embedded list":           `keys: [geheim]`,
		"an embedded list of blocks": `pairs: [{name: authorization, value: geheim}]`,
		"an embedded list as a map":  `pairs: {authorization: geheim}`,
	} {
		t.Run(name, func(t *testing.T) {
			file := t.TempDir() + "/config.yaml"
			text := "receivers: {otlp: {protocols: {grpc: }}}\nprocessors: {probe: {" + block + "}}\nexporters: {nop: }\n" +
				"service: {pipelines: {traces: {receivers: [otlp], processors: [probe], exporters: [nop]}}}"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			args := []string{"print-config", "--defaults", "--config", file}
			if app.Run(t.Context(), args, &out, io.Discard, append(tracing.Components(), probe())) != 0 {
				t.Fatal(out.String())
			}
			if printed := out.String(); strings.Contains(printed, "geheim") || !strings.Contains(printed, "***") {
				t.Errorf("printed %s", printed)
			}
		})
	}
}

// A value that must be text is what the user has written, not what YAML makes of it.
func TestTextOfNumbers(t *testing.T) {
	c := probe().Defaults().(yamltree.TreeConfig)
	tree := map[string]any{"name": 1.1, "texts": []any{7, true, "x"}, "ratio": 1, "any": 1.1}
	before := maps.Clone(tree)
	texts := map[string]string{"name": "1.10", "texts::0": "007", "texts::1": "True", "ratio": "1", "any": "1.10"}
	if err := c.UnmarshalTree(tree, texts); err != nil {
		t.Fatal(err)
	}
	got := c.EffectiveTree()
	if got["name"] != "1.10" || got["any"] != 1.1 || got["ratio"] != 1.0 || !reflect.DeepEqual(got["texts"], []any{"007", "True", "x"}) {
		t.Errorf("got %v", got)
	}
	if !reflect.DeepEqual(tree, before) {
		t.Errorf("tree was changed to %v", tree)
	}
}

// FuzzUnmarshalTree checks that no tree makes a component panic, that all errors have a message,
// and that an accepted configuration is accepted again and can be described.
func FuzzUnmarshalTree(f *testing.F) {
	factories := map[string]pipeline.Factory{"probe": probe()}
	for _, c := range tracing.Components() {
		if _, ok := c.Defaults().(yamltree.TreeConfig); ok {
			factories[c.Type()] = c
		}
	}
	names := slices.Sorted(maps.Keys(factories))
	for _, file := range []string{"testdata/print.yaml", "testdata/mistakes.yaml"} {
		for id, tree := range blocksOf(f, file) {
			typ, _, _ := strings.Cut(id, "/")
			f.Add(uint8(slices.Index(names, typ)), encodeTree(tree))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, encoded []byte) {
		tree, ok := decodeTree(encoded)
		if !ok {
			return
		}
		factory := factories[names[int(which)%len(names)]]
		c := factory.Defaults().(yamltree.TreeConfig)
		err := c.UnmarshalTree(tree, map[string]string{"name": "5"})
		c.EffectiveTree()
		c.TreeKeys()
		if err != nil {
			if err.Error() == "" {
				t.Error("empty message")
			}
			return
		}
		again := factory.Defaults().(yamltree.TreeConfig)
		if err := again.UnmarshalTree(c.GivenTree(), nil); err != nil {
			t.Errorf("accepted, then refused: %v", err)
		}
	})
}
