package config_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
)

// Each file of testdata/load has a kind of mistake. It begins with the exact output: a `# want: `
// line for each mistake or warning, or `# want: ok`. Line numbers start after these lines.
func TestLoad(t *testing.T) {
	hosttest.EachFile(t, "testdata/load/*.yaml", func(t *testing.T, file, text string) {
		want, body := hosttest.Header(text, "# want: ")
		config, err := hosttest.NewWorld().Load(body)
		var got []string
		if err != nil {
			got = strings.Split(err.Error(), "\n")
		} else {
			for _, w := range config.Warnings() {
				got = append(got, "warning: "+w)
			}
			if got == nil {
				got = []string{"ok"}
			}
		}
		if golden.Updating() {
			golden.Write(t, file, "# want: "+strings.Join(got, "\n# want: ")+"\n"+body)
			return
		}
		if hosttest.Lines(got...) != hosttest.Lines(want...) {
			t.Errorf("got:\n%s\nwant:\n%s", hosttest.Lines(got...), hosttest.Lines(want...))
		}
	})
}

// readMap reads files from a map.
func readMap(files map[string]string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}
}

func TestPresets(t *testing.T) {
	o := app.LoadOptions{
		Factories: hosttest.NewWorld().Factories(),
		Presets: []app.Preset{
			{Name: "one", YAML: []byte(hosttest.Small + "extensions: {hub/one: }")},
			{Name: "two", YAML: []byte(hosttest.Small + "extensions: {hub/two: }")},
		},
		ReadFile: readMap(map[string]string{"bare.yaml": hosttest.Small + "extensions: {hub/file: }", "more.yaml": "extensions: {hub/more: }"}),
	}
	f := func(preset, files, want string) {
		t.Helper()
		o.Preset, o.Files = preset, strings.Fields(files)
		got := "error: "
		config, err := app.Load(o)
		if err != nil {
			got += err.Error()
		} else {
			got = strings.Join(config.Warnings(), "\n")
		}
		if got != want {
			t.Errorf("preset %q with files %q:\n got %s\nwant %s", preset, files, got, want)
		}
	}
	const unused = ": is configured but not used: service.extensions does not list it"
	f("", "", "preset one:4:14: extensions.hub/one"+unused) // the first
	f("two", "", "preset two:4:14: extensions.hub/two"+unused)
	f("", "bare.yaml", "bare.yaml:4:14: extensions.hub/file"+unused)
	f("two", "more.yaml", "preset two:4:14: extensions.hub/two"+unused+"\nmore.yaml:1:14: extensions.hub/more"+unused)
	f("", "bare.yaml more.yaml", "bare.yaml:4:14: extensions.hub/file"+unused+"\nmore.yaml:1:14: extensions.hub/more"+unused)
	f("tow", "", `error: unknown preset "tow"; did you mean "two"?`)
	f("", "none.yaml", "error: cannot read configuration: file does not exist")
	f("", "more.yaml", "error: more.yaml: nothing to run: service.pipelines needs at least one pipeline, for example "+
		"traces: {receivers: [source], exporters: [sink]}")
	o.Presets = nil
	f("", "", "error: config: nothing to run: service.pipelines needs at least one pipeline, for example "+
		"traces: {receivers: [source], exporters: [sink]}")
}

func TestStrictTurnsWarningsIntoErrors(t *testing.T) {
	o := app.LoadOptions{
		Factories: hosttest.NewWorld().Factories(), Files: []string{"c.yaml"}, Strict: true,
		ReadFile: readMap(map[string]string{"c.yaml": "exporters: {sink/spare: }\nreceivers: {surce: }\n"}),
	}
	_, err := app.Load(o)
	want := "c.yaml:1:13: exporters.sink/spare: is configured but not used: no pipeline lists it\n" +
		`c.yaml:2:13: receivers: unknown receiver type "surce"; did you mean "source"?`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestOverrides(t *testing.T) {
	f := func(set, want string) {
		t.Helper()
		got := "ok"
		o, err := app.ParseSet(set)
		if err == nil {
			_, err = hosttest.NewWorld().Load(hosttest.Small, o)
		}
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", set, got, want)
		}
	}
	f("exporters::sink::max_traces=5", "ok")
	f("exporters.sink.max_traces=5", "ok")
	f("exporters.sink.max_traces=-5", "--set exporters.sink.max_traces: exporters.sink.max_traces: must not be below 0")
	f("exporters::sink.max_traces=5", "--set exporters::sink.max_traces: exporters: "+
		`unknown exporter type "sink.max_traces"; known: hop, sink`)
	f("exporters.sink.max_trace=5", `--set exporters.sink.max_trace: exporters.sink: unknown key "max_trace"; did you mean "max_traces"?`)
	f("service.pipelines.traces.exporters=[sink, hop]",
		`--set service.pipelines.traces.exporters: service.pipelines.traces.exporters: `+
			`exporter "hop" is not configured; configured are: sink`)
	f("receivers.source=null", `c.yaml:3:44: service.pipelines.traces.receivers: receiver "source" is not configured`)
	f("receivers.source.endpoint=${NOPE}", "--set receivers.source.endpoint: receivers.source.endpoint: "+
		"environment variable NOPE is not set; write ${NOPE:-default} for a default")
	f("receivers.source.endpoint=${SET}:1", "ok")
	f("nothing", "--set: write path=value, for example --set service::telemetry::logs::level=debug")
	f("=5", "--set: write path=value, for example --set service::telemetry::logs::level=debug")
	f("a..b=5", "--set a..b: the path has an empty part")
}

// Errors do not show the values of settings and flags, which may be secrets.
func TestErrorsDoNotShowValues(t *testing.T) {
	const secret = "S3CR3T"
	for _, set := range []string{
		"extensions.hub.tokn=S3CR3T",
		"extensions.hub.token=[S3CR3T]",
		"extensions.hub.token={a: S3CR3T}",
		"extensions.hub.token={S3CR3T",
		"extensions.hub.token=*S3CR3T",
		"extensions.hub.token=@S3CR3T",
		"extensions.hub.token=a${S3CR3T",
		"extensions.hub.listeners=S3CR3T",
		"extensions.hub=S3CR3T",
		"exporters.sink=http://S3CR3T@host",
		"receivers.source.endpoint=http://host/?token=S3CR3T",
		"receivers.source.endpoint=http://ann:S3CR3T@host",
		"extensions..token=S3CR3T",
		"S3CR3T",
		"=S3CR3T",
	} {
		o, err := app.ParseSet(set)
		if err == nil {
			_, err = hosttest.NewWorld().Load(hosttest.Small, o)
		}
		if err == nil {
			t.Errorf("--set %s: no error", set)
			continue
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("--set %s: %v", set, err)
		}
	}
}

func TestLoadFailsBeforeTheFiles(t *testing.T) {
	w := hosttest.NewWorld()
	_, err := app.Load(app.LoadOptions{Factories: append(w.Factories(), w.Factories()[2])})
	if want := `BUG: this program has two types of exporter called "sink"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	failing := errors.New("disk on fire")
	_, err = app.Load(app.LoadOptions{Files: []string{"x"}, ReadFile: func(string) ([]byte, error) { return nil, failing }})
	if !errors.Is(err, failing) {
		t.Errorf("got %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	for _, s := range []string{"", hosttest.Small, "receivers: []", "service: 3", "a: &a {<<: *a, b: [*a]}", "a: {b: ${X}", "? [a]\n: {}\n",
		"exporters: {sink: ~, sink/..: , 'sink/\u00a0': }", "service: {pipelines: {traces: null, traces/1: , 5: []}}"} {
		f.Add(s, "service.telemetry.logs.level=debug")
	}
	f.Add(hosttest.Small, "exporters::sink=[1, {a: b}]")
	f.Add(hosttest.Small, "receivers=}")
	for _, name := range []string{"foreign", "connectors-unknown", "foreign-refused"} {
		text, err := os.ReadFile("testdata/load/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), "")
	}
	f.Fuzz(func(t *testing.T, text, set string) {
		w := hosttest.NewWorld()
		var overrides []app.Override
		if o, err := app.ParseSet(set); err == nil {
			overrides = append(overrides, o)
		}
		config, err := w.Load(text, overrides...)
		if err != nil {
			if config != nil || err.Error() == "" {
				t.Errorf("config %v with error %q", config, err)
			}
			return
		}
		// A configuration that loads can be built.
		if _, err := app.New(config, app.Options{Log: &strings.Builder{}}); err != nil {
			t.Errorf("%q with %q can be loaded but not built: %v", text, set, err)
		}
	})
}
