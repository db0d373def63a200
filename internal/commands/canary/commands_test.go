package canary

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/commands"
)

// command runs the command as the program does.
func command(ctx context.Context, t *testing.T, env pipeline.Env, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	run := tool{env, func(string) string { return "" }}.setup(fs)
	if err := fs.Parse(args); err != nil {
		return "", "", err
	}
	var out, log bytes.Buffer
	err = run(ctx, commands.Invocation{Args: fs.Args(), Stdout: &out, Stderr: &log})
	return out.String(), log.String(), err
}

func TestFlagsThatCannotWork(t *testing.T) {
	for want, args := range map[string][]string{
		`unexpected argument "x"`: {"x"},
		`--otlp: "localhost:4317" is not a URL; write http://localhost:4318 (OTLP over HTTP)`: {"--otlp=localhost:4317"},
		`--query: "http://***@host" is not a URL; write http://localhost:16686`:               {"--query=http://user:password@host"},
		`--interval must be at least 1ms, not 0s`:                                             {"--interval=0"},
		`--ages: "soon" is not a duration; write 250ms, 5s, 1h30m or 7d`:                      {"--ages=soon"},
		`--ages must ascend from --read-after, as 10s,1m,1h does`:                             {"--read-after=20s"},
		"--once must not be negative\n--remember must be from 1 to 10000000, not 0":           {"--once=-1", "--remember=0"},
		"--ages: 33 ages, maximum 32":                                                         {"--ages=" + strings.Repeat("1h,", 32)},
		"invalid value \"x\" for flag -header: \"x\" is not of the form `Name: value`":        {"--header=x"},
	} {
		if _, _, err := command(t.Context(), t, pipeline.SystemEnv(), args...); err == nil || err.Error() != want {
			t.Errorf("%q: got %v\nwant %s", args, err, want)
		}
	}
}

// The number of --once may be left out, and may be written with or without `=`.
func TestOnceFlag(t *testing.T) {
	for want, args := range map[string][]string{
		"10 traces":  {"--once"},
		"10 more":    {"--once", "--interval=5ms"},
		"20 traces":  {"--once=20"},
		"20 operand": {"--once", "20"},
		"0 traces":   {},
	} {
		f := flags{}
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		f.define(fs, func(string) string { return "" })
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		rest := f.once.takeOperand(fs.Args())
		if number, _, _ := strings.Cut(want, " "); f.once.String() != number || len(rest) > 0 {
			t.Errorf("%q: %v traces, operands %q", args, f.once, rest)
		}
	}
	for want, args := range map[string][]string{
		`unexpected argument "5"`:     {"5"},
		`unexpected argument "x"`:     {"--once", "x"},
		"--once must not be negative": {"--once=-5"},
		`invalid boolean value "x" for -once: "x" is not a number of traces`: {"--once=x"},
	} {
		if _, _, err := command(t.Context(), t, pipeline.SystemEnv(), args...); err == nil || err.Error() != want {
			t.Errorf("%q: got %v\nwant %s", args, err, want)
		}
	}
}

func TestFlags(t *testing.T) {
	f := flags{}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	f.define(fs, func(string) string { return "" })
	args := []string{"--tenant=t", "--header=authorization: Bearer x:y", "--ages=1m, 7d", "--ignore-tags=a,b", "--interval=5s"}
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	o, err := f.options(func() uint64 { return 7 })
	if err != nil {
		t.Fatal(err)
	}
	ages := []time.Duration{time.Second, time.Minute, 7 * 24 * time.Hour}
	if !slices.Equal(o.Ages, ages) || !slices.Equal(o.IgnoredTags, []string{"a", "b"}) ||
		o.Header.Get("authorization") != "Bearer x:y" || o.Header.Get("x-tenant") != "t" || o.Seed != 7 || o.Interval != 5*time.Second {
		t.Errorf("got %+v", o)
	}
	f.once, f.seed = 3, 8
	if o, err = f.options(nil); err != nil || len(o.Ages) != 1 || o.Traces != 3 || o.Seed != 8 {
		t.Errorf("got %+v, %v", o, err)
	}
}

// serve starts a backend and returns its URL.
func serve(t *testing.T, b *backend) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the canary was stopped while it wrote
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		b.mu.Lock()
		defer b.mu.Unlock()
		if r.Method == http.MethodPost {
			r.URL.Scheme, r.URL.Host = "http", "in"
			b.write(w, r)
		} else {
			b.read(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestOnceOverTheNetwork(t *testing.T) {
	b := newBackend(t)
	url := serve(t, b)
	args := []string{"--once=5", "--interval=2ms", "--read-after=0", "--otlp", url, "--query", url}
	stdout, stderr, err := command(t.Context(), t, pipeline.SystemEnv(), args...)
	const want = "5 traces written, 0 not acknowledged\nreadings: 10 ok,"
	if err != nil || !strings.HasPrefix(stdout, want) || !strings.Contains(stderr, `"msg":"started canary"`) {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}
	b.change = func(_ int, _ *http.Request, status int, body string) (int, string) {
		return status, strings.ReplaceAll(body, "Cart.Load", "Cart.Lead")
	}
	_, stderr, err = command(t.Context(), t, pipeline.SystemEnv(), args...)
	if err == nil || err.Error() != "acknowledged spans were lost or changed: 0 readings had missing spans, 10 had wrong spans" ||
		!strings.Contains(stderr, `operation: got \"Cart.Lead\", want \"Cart.Load\"`) {
		t.Errorf("%v\n%s", err, stderr)
	}
	b.refuse = func(int) (int, string) { return http.StatusTooManyRequests, "later" }
	_, _, err = command(t.Context(), t, pipeline.SystemEnv(), args...)
	if err == nil || err.Error() != "5 traces were not acknowledged, 0 readings failed" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err = command(ctx, t, pipeline.SystemEnv(), args...); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Metrics are served until the context ends, which is not an error.
func TestMetricsAreServed(t *testing.T) {
	b := newBackend(t)
	url := serve(t, b)
	read, count := make(chan struct{}), 0
	b.change = func(_ int, _ *http.Request, status int, body string) (int, string) {
		if count++; count == int(ways)+1 { // one trace was read in all ways
			close(read)
		}
		return status, body
	}
	env := pipeline.SystemEnv()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var address string
	listening := make(chan struct{})
	env.Listen = func(ctx context.Context, network, at string) (net.Listener, error) {
		ln, err := new(net.ListenConfig).Listen(ctx, network, at)
		if err == nil {
			address = ln.Addr().String()
			close(listening)
		}
		return ln, err
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, stderr, err := command(ctx, t, env, "--interval=5ms", "--read-after=0", "--otlp", url, "--query", url, "--listen=localhost:0")
		if err != nil {
			t.Errorf("%v: %s", err, stderr)
		}
	})
	defer wg.Wait()
	defer cancel()
	<-listening
	<-read
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if text := string(body); err != nil || !strings.Contains(text, `tracing_canary_reads{how="search",result="missing"} 0`) ||
		strings.Contains(text, `{how="search",result="ok"} 0`) || !strings.Contains(text, "go_goroutines") {
		t.Errorf("%v: %s", err, text)
	}
	_, _, err = command(ctx, t, pipeline.SystemEnv(), "--listen="+address)
	if err == nil || !strings.HasPrefix(err.Error(), "--listen: metrics.endpoint: cannot listen on "+address) {
		t.Errorf("two listeners: %v", err)
	}
}
