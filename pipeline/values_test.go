package pipeline_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"gopkg.in/yaml.v3"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
)

// accepts checks the value that a field parses from text.
func accepts[T comparable, P interface {
	*T
	encoding.TextUnmarshaler
}](t *testing.T, text string, want T) {
	t.Helper()
	var got T
	if err := P(&got).UnmarshalText([]byte(text)); err != nil || got != want {
		t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
	}
}

// refuses checks the error of a field for invalid text, and that the field is unchanged.
func refuses[T comparable, P interface {
	*T
	encoding.TextUnmarshaler
}](t *testing.T, want string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		var got, zero T
		err := P(&got).UnmarshalText([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || got != zero {
			t.Errorf("%q: got %v, %v, want %s", text, got, err, want)
		}
	}
}

func TestDuration(t *testing.T) {
	type D = pipeline.Duration
	accepts(t, "0", D(0))
	accepts(t, "250ms", D(250*time.Millisecond))
	accepts(t, "1h30m", D(90*time.Minute))
	accepts(t, "7d", D(7*24*time.Hour))
	accepts(t, "1.5s", D(1500*time.Millisecond))
	refuses[D](t, "is not a duration; write 250ms, 5s, 1h30m or 7d",
		"", "5", "d", "1.5d", "-1d", "1d12h", "99999999d", "soon", "9999999999h")
	refuses[D](t, "a duration must not be negative", "-5s")
	if d := D(90 * time.Second); d.String() != "1m30s" || d.Std() != 90*time.Second || string(hosttest.Must(d.MarshalText())) != "1m30s" {
		t.Errorf("%v", d)
	}
}

func TestByteSize(t *testing.T) {
	type B = pipeline.ByteSize
	for text, want := range map[string]B{
		"0": 0, "1000000": 1e6, "1B": 1, "1kB": 1000, "1KB": 1000, "1KiB": 1024, "2MB": 2e6, "4MiB": 4 << 20, "3GB": 3e9,
		"50GiB": 50 << 30, "1TB": 1e12, "2TiB": 2 << 40, "1.5GiB": 3 << 29, " 64 MiB ": 64 << 20, "1e3": 1000,
	} {
		accepts(t, text, want)
	}
	refuses[B](t, "is not a size; write 64MiB, 50GiB, a number of bytes or 10%",
		"", "MiB", "-1", "5M", "5mib", "NaN", "inf", "9223372036854775808", "8388608TiB", "1e300")
	refuses[B](t, "is not a percentage of memory; write 1% to 100%", "%", "0%", "-1%", "101%", "NaN%", "inf%", "10%%")
	var all, half pipeline.ByteSize
	if err := all.UnmarshalText([]byte("100%")); err != nil || all < 1<<20 {
		t.Errorf("all memory is %v, %v", all, err)
	}
	if err := half.UnmarshalText([]byte("50%")); err != nil || half != all/2 {
		t.Errorf("half of %d is %d, %v", all, half, err)
	}
	for want, size := range map[string]B{"0": 0, "1000000": 1e6, "1KiB": 1024, "1536MiB": 3 << 29, "5GiB": 5 << 30, "1TiB": 1 << 40} {
		if got := string(hosttest.Must(size.MarshalText())); got != want {
			t.Errorf("%d is written %s, want %s", int64(size), got, want)
		}
	}
}

func FuzzFields(f *testing.F) {
	for _, s := range []string{"5s", "7d", "10%", "NaN%", "1.5GiB", "localhost:80", "[::1]:0", "a/b", "-1", "9223372036854775807"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var d pipeline.Duration
		if err := d.UnmarshalText([]byte(s)); err == nil {
			accepts(t, d.String(), d)
			if d < 0 {
				t.Errorf("%q is %v", s, d)
			}
		}
		var b pipeline.ByteSize
		if err := b.UnmarshalText([]byte(s)); err == nil && b < 0 {
			t.Errorf("%q is %v", s, b)
		}
		var e pipeline.Endpoint
		if err := e.UnmarshalText([]byte(s)); err == nil {
			accepts(t, e.String(), e)
		}
		if id, err := pipeline.ParseID(s); err == nil {
			accepts(t, id.String(), id)
		}
	})
}

func TestSecretIsNeverPrinted(t *testing.T) {
	const secret = "hunter2"
	type config struct {
		Token   pipeline.Secret            `json:"token" yaml:"token"`
		Tokens  []pipeline.Secret          `json:"tokens" yaml:"tokens"`
		ByName  map[string]pipeline.Secret `json:"by_name" yaml:"by_name"`
		Pointer *pipeline.Secret           `json:"pointer" yaml:"pointer"`
	}
	s := pipeline.Secret(secret)
	c := config{s, []pipeline.Secret{s}, map[string]pipeline.Secret{"a": s}, &s}
	var printed []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s", "%T%[1]v"} {
		printed = append(printed, fmt.Sprintf(verb, s), fmt.Sprintf(verb, c), fmt.Sprintf(verb, &c))
	}
	var log strings.Builder
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	logger := zap.New(zapcore.NewCore(encoder, zapcore.AddSync(&log), zap.DebugLevel))
	logger.Info("x", zap.Any("a", s), zap.Any("b", c), zap.Any("c", &c), zap.Stringer("d", s), zap.Reflect("e", c), zap.Any("f", c.Tokens))
	printed = append(printed, log.String(), string(hosttest.Must(json.Marshal(c))), string(hosttest.Must(yaml.Marshal(c))),
		s.String(), fmt.Sprint(s, c))
	for _, p := range printed {
		if strings.Contains(p, secret) || strings.Contains(p, fmt.Sprintf("%x", secret)) {
			t.Errorf("printed: %s", p)
		}
	}
	if got := printed[0] + fmt.Sprint(pipeline.Secret("")); got != "***" {
		t.Errorf("a secret and none are printed as %q", got)
	}
	accepts(t, secret, s)
}

func TestEndpoint(t *testing.T) {
	for _, s := range []string{"localhost:4317", ":4317", "[::1]:0", "0.0.0.0:65535"} {
		accepts(t, s, pipeline.Endpoint(s))
	}
	refuses[pipeline.Endpoint](t, "is not an address; write host:port, for example localhost:4317",
		"", "localhost", "4317", "http://a:1")
	refuses[pipeline.Endpoint](t, "is not an address; write [host]:port for an IPv6 address, for example [::1]:4317", "::1", "a:b:1")
	accepts(t, "::1:80", pipeline.Endpoint("[::1]:80"))
	accepts(t, "fe80::1%eth0:80", pipeline.Endpoint("[fe80::1%eth0]:80"))
	refuses[pipeline.Endpoint](t, "is not a number from 0 to 65535",
		"localhost:", "localhost:http", "localhost:65536", "localhost:-1")
	refuses[pipeline.Endpoint](t, "is not a host; write host:port without a scheme", "a/b:1", "a b:1")
	if e := pipeline.Endpoint("a:1"); string(hosttest.Must(e.MarshalText())) != "a:1" {
		t.Errorf("%v", e)
	}
}

func TestID(t *testing.T) {
	accepts(t, "otlp", pipeline.ID{Type: "otlp"})
	accepts(t, "otlp/a.b-c_d/é", pipeline.ID{Type: "otlp", Name: "a.b-c_d/é"})
	refuses[pipeline.ID](t, "is not a component id; write type or type/name",
		"", "/", "a/", "/a", "a b", "a:b", "a,b", "a\tb", "a\x00", "a\xff", "a=b",
		strings.Repeat("a", 129))
	if id := (pipeline.ID{Type: "a", Name: "b"}); id.IsZero() || !(pipeline.ID{}).IsZero() ||
		string(hosttest.Must(id.MarshalText())) != "a/b" {
		t.Errorf("%v", id)
	}
}

func TestOptional(t *testing.T) {
	if v, on := pipeline.Absent(5).Get(); v != 5 || on {
		t.Errorf("absent: %v, %v", v, on)
	}
	if v, on := pipeline.Present(5).Get(); v != 5 || !on {
		t.Errorf("present: %v, %v", v, on)
	}
	// In a file, the key enables the block with its defaults, and null disables it again.
	f := func(http, override, wantEndpoint string, wantOn bool) {
		t.Helper()
		w := hosttest.NewWorld()
		var o []app.Override
		if override != "" {
			o = append(o, hosttest.Must(app.ParseSet("extensions.ask.http="+override)))
		}
		w.Start(t, "exporters: {sink: }\nextensions: {ask: {storage: sink"+http+"}}\nservice: {extensions: [ask]}", o...)
		v, on := w.Ask.HTTP.Get()
		if string(v.Endpoint) != wantEndpoint || on != wantOn {
			t.Errorf("%q and %q: %v, %v", http, override, v, on)
		}
	}
	f("", "", "localhost:1", false)
	f(", http: ", "", "localhost:1", true)
	f(", http: {}", "", "localhost:1", true)
	f(`, http: {endpoint: "a:2"}`, "", "a:2", true)
	f(", http: ", "null", "localhost:1", false)
	f("", "{endpoint: 'b:3'}", "b:3", true)
}

func TestRef(t *testing.T) {
	var none pipeline.Ref[hosttest.Reader]
	if none.IsSet() || !none.ID().IsZero() {
		t.Errorf("a reference to nothing: %v", none)
	}
	var sink pipeline.Ref[hosttest.Reader]
	if err := sink.UnmarshalText([]byte("sink")); err != nil || !sink.IsSet() || sink.ID().String() != "sink" {
		t.Errorf("%v, %v", sink, err)
	}
	if r := pipeline.BoundRef[hosttest.Reader](&hosttest.Sink{Part: hosttest.Part{ID: "x"}}); !r.IsSet() || r.Get().Read() != "read x" {
		t.Errorf("%v", r)
	}
	if err := none.UnmarshalText([]byte("a b")); err == nil || none.IsSet() {
		t.Errorf("%v, %v", none, err)
	}
	// The reference is bound to the component itself, even if no pipeline lists it.
	w := hosttest.NewWorld()
	w.Start(t, "exporters: {sink/far: }\nextensions: {ask: {storage: proxy}, proxy: {of: sink/far}}\nservice: {extensions: [ask]}")
	if got := w.Ask.Storage.Get(); got.Read() != "read proxy" || w.Ask.Storage.ID().Type != "proxy" {
		t.Errorf("bound to %v", got)
	}
}

// The Go type of components must be known before they are built. The name becomes a folder name.
func TestFactoriesAreChecked(t *testing.T) {
	f := func(typ, want string, make func(typ string) pipeline.Factory) {
		t.Helper()
		defer func() {
			if got := fmt.Sprint(recover()); got != want {
				t.Errorf("%q: got %s, want %s", typ, got, want)
			}
		}()
		if f := make(typ).Doc("It does."); f.Type() != typ || f.Kind() != pipeline.KindExtension || f.Summary() != "It does." {
			t.Errorf("%v", f)
		}
	}
	defaults := func() hosttest.StepConfig { return hosttest.StepConfig{} }
	concrete := func(typ string) pipeline.Factory {
		return pipeline.Extension(typ, defaults, func(pipeline.Settings, hosttest.StepConfig) (*hosttest.Part, error) { return nil, nil })
	}
	anything := func(typ string) pipeline.Factory {
		return pipeline.Extension(typ, defaults, func(pipeline.Settings, hosttest.StepConfig) (any, error) { return nil, nil })
	}
	f("remote_storage2", "<nil>", concrete)
	for _, typ := range []string{"", "a b", "a/b", "A", "a-b", "é"} {
		f(typ, fmt.Sprintf("pipeline: extension %q: type names consist of a-z, 0-9 and _", typ), concrete)
	}
	alias := func(typ string) pipeline.Factory { return concrete("x").Alias("y_2", typ) }
	f("A", `pipeline: extension "A": type names consist of a-z, 0-9 and _`, alias)
	if f := concrete("x").Alias("y").Alias("z"); f.Type() != "x" || !slices.Equal(f.Aliases(), []string{"y", "z"}) {
		t.Errorf("type %s with aliases %v", f.Type(), f.Aliases())
	}
	f("x", `pipeline: extension "x": build must return a concrete type, whose methods are known before it is built`, anything)
	if c, ok := concrete("x").Defaults().(*hosttest.StepConfig); !ok || c == nil {
		t.Error("no defaults")
	}
}
