package traces

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// serve starts a server and returns its URL with a base path.
func serve(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(srv.Close)
	return srv.URL + "/base/"
}

// reply returns a handler that responds with a status and body.
func reply(status int, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func TestInvalidFlags(t *testing.T) {
	f := func(want, name string, args ...string) {
		t.Helper()
		_, _, err := command(t.Context(), t, name, args...)
		if err == nil || err.Error() != want {
			t.Errorf("%s %q: got %v\nwant %s", name, args, err, want)
		}
	}
	f("expected one trace ID, got 0", "trace")
	f("expected one trace ID, got 2", "trace", "a", "b")
	f("--max-spans must be above 0, not 0", "trace", "--max-spans=0", "a")
	f(`--query: "localhost:16686" is not a valid URL; expected something like http://localhost:16686`, "trace",
		"--query=localhost:16686", "a")
	f(`--query: "http://***@host" is not a valid URL; expected something like http://localhost:16686`, "trace",
		"--query=http://user:password@host", "a")
	f("--timeout must be above 0\n--max-answer must be above 0", "services", "--timeout=0", "--max-answer=0")
	f("invalid value \"x\" for flag -header: \"x\" is not of the form `Name: value`", "services", "--header=x")
	f("expected one service, got 2", "services", "a", "b")
	f("expected one search in quotes, for example '{ duration > 1s }', got 2 arguments", "search", "a", "b")
	f("empty search; use {} for all spans", "search", "")
	f("column 12: unknown field \"durration\"; write .durration for an attribute of that name, or put text in quotes\n"+
		"  { error && durration > 1s }\n             ^^^^^^^^^", "search", "{ error && durration > 1s }")
	f("invalid value \"x\" for flag -tag: \"x\" is not of the form `key=value`", "search", "--tag=x")
	f(`invalid value "x=2" for flag -tag: duplicate key "x"`, "search", "--tag=x=1", "--tag=x=2")
	f(`--from: "soon" is not a time; use 2026-11-21T17:00:00Z, or 30m, 1h or 7d for a time before now`, "search", "--from=soon")
	f("--from must be before --to\n--limit must be above 0, not 0\n--max is below --min\n--errors and --tag error=false cannot be combined",
		"search", "--from=1h", "--to=2h", "--limit=0", "--min=2s", "--max=1s", "--errors", "--tag=error=false")
}

func TestRequests(t *testing.T) {
	f := func(want string, name string, args ...string) {
		t.Helper()
		got := ""
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			got = r.Method + " " + r.URL.String()
			if r.Header.Get("X-Tenant") != "birds" || r.Header.Get("Authorization") != "Bearer a:b" {
				t.Errorf("headers are %v", r.Header)
			}
			reply(200, `{"data":[],"summaries":[]}`)(w, r)
		})
		args = append(args, "--query", url, "--tenant=birds", "--header=authorization: Bearer a:b")
		if _, _, err := command(t.Context(), t, name, args...); err != nil || got != want {
			t.Errorf("%s %q: %v, got\n%s, want\n%s", name, args, err, got, want)
		}
	}
	f("GET /base/api/traces/4bf92f35", "trace", "--max-spans=1", "4bf92f35")
	f("GET /base/api/traces/a%2Fb%3F?raw=true", "trace", "--raw", "a/b?")
	f("GET /base/api/services", "services")
	f("GET /base/api/operations?service=a%26b", "services", "a&b")
	const summaries = "GET /base/api/v3/trace-summaries?"
	f(summaries+"query.searchDepth=20&query.startTimeMax=2026-11-21T18%3A00%3A00Z&query.startTimeMin=2026-11-21T17%3A00%3A00Z", "search")
	f(summaries+"query.attributes=%7B%22error%22%3A%22true%22%2C%22k%22%3A%22a%3Db%22%7D&query.durationMax=2s&query.durationMin=100ms&"+
		"query.operationName=GET+%2F&query.searchDepth=5&query.serviceName=web&"+
		"query.startTimeMax=2026-11-21T18%3A00%3A00Z&query.startTimeMin=2026-11-14T18%3A00%3A00Z",
		"search", "--service=web", "--operation=GET /", "--min=100ms", "--max=2s", "--errors", "--tag=k=a=b", "--limit=5", "--from=7d")
	f(summaries+"query.searchDepth=20&query.startTimeMax=2023-11-14T22%3A13%3A21.5Z&query.startTimeMin=2023-11-14T22%3A13%3A20Z",
		"search", "--from=2023-11-14T22:13:20Z", "--to=2023-11-14T23:13:21.5+01:00", "--json")
	f(summaries+"query.q=%7B+error+%7D&query.searchDepth=20&query.startTimeMax=2026-11-21T18%3A00%3A00Z&"+
		"query.startTimeMin=2026-11-21T17%3A00%3A00Z", "search", "{ error }")
}

// Each error message says what went wrong.
func TestErrorResponses(t *testing.T) {
	f := func(want string, answer func(http.ResponseWriter, *http.Request), args ...string) {
		t.Helper()
		url := serve(t, answer)
		base := strings.TrimSuffix(url, "/")
		_, _, err := command(t.Context(), t, "trace", append(args, "--query", url, "7ace")...)
		if err == nil {
			t.Fatalf("no error, want %s", want)
		}
		if got := strings.ReplaceAll(err.Error(), base, "URL"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	envelope := func(status int, msg string) func(http.ResponseWriter, *http.Request) {
		return reply(status, fmt.Sprintf(`{"data":null,"total":0,"limit":0,"offset":0,"errors":[{"code":%d,"msg":"%s"}]}`+"\n", status,
			msg))
	}
	f("trace 7ace: status 404: trace not found", envelope(404, "trace not found"))
	f(`trace 7ace: status 400: bad id \x1b[2J`, envelope(400, `bad id \u001b[2J`))
	f("trace 7ace: status 404: URL is not a query service; check the base path", reply(404, "404 page not found\n"))
	f("trace 7ace: status 401: missing tenant header", reply(401, "missing tenant header"))
	f("trace 7ace: status 500: Internal Server Error", reply(500, ""))
	f(`trace 7ace: status 502: \x1b]0;x`, reply(502, "\x1b]0;x"))
	f("trace 7ace: status 302: redirected to https://login.example/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://login.example/", http.StatusFound)
	})
	f("trace 7ace: status 429: too many; retry after 7 s", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		reply(429, "too many")(w, r)
	})
	f("trace 7ace: status 400: malformed", reply(400, `{"error":{"httpCode":400,"message":"malformed"}}`))
	f("trace 7ace: status 200: URL is not a query service; check the base path", reply(200, "<!doctype html>"))
	f("trace 7ace: status 503: Service Unavailable", reply(503, "<html><body>Sorry</body></html>"))
	f("decoding response of URL: invalid character 'x' looking for beginning of value", reply(200, "x"))
	f("decoding response of URL: missing member \"data\"", reply(200, `{}`))
	f("decoding response of URL: unexpected EOF", reply(200, `{"data":[{"spans":[{`))
	f(`decoding response of URL: unexpected "\x1b" at byte 16, expected "["`, reply(200, `{"data":"\u001b"}`))
	long := reply(200, `{"x":"`+strings.Repeat(" ", 2000))
	f("response of URL is longer than 1KiB; increase --max-answer", long, "--max-answer=1KiB")
	f("response of URL is longer than 1KiB; increase --max-answer", long, "--max-answer=1KiB", "--json")
	f("reading response of URL: unexpected EOF", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		reply(200, `{"data":[`)(w, r)
	})
	_, _, err := command(t.Context(), t, "services", "--query=http://127.0.0.1:1")
	if err == nil || !strings.HasPrefix(err.Error(), "cannot connect to http://127.0.0.1:1: ") ||
		!strings.Contains(err.Error(), "set --query") {
		t.Error(err)
	}
}

func TestTimeout(t *testing.T) {
	done := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/base/api/services" {
			reply(200, `{"data":[`)(w, r)
			w.(http.Flusher).Flush()
		}
		select {
		case <-r.Context().Done():
		case <-done:
		}
	})
	t.Cleanup(func() { close(done) })
	for _, args := range [][]string{{"trace", "7ace"}, {"services"}} {
		_, _, err := command(t.Context(), t, args[0], append(args[1:], "--query", url, "--timeout=20ms")...)
		if err == nil || !strings.HasSuffix(err.Error(), "no response within 20ms; increase --timeout") {
			t.Errorf("%q: %v", args, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := command(ctx, t, "services", "--query", url); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTrace(t *testing.T) {
	text := answer(made{id: "1", service: "web", operation: "GET /", duration: 1000})
	url := serve(t, reply(200, strings.Replace(text, `"errors":null`, `"errors":[{"msg":"result is incomplete: \u0007"}]`, 1)))
	stdout, stderr, err := command(t.Context(), t, "trace", "--query", url, "7ace", "--max-spans=5")
	if want := render(t, text, false, 5, screen{width: 80}); err != nil || stdout != want ||
		stderr != "warning: result is incomplete: \\a\n" {
		t.Errorf("%v: %s%s", err, stdout, stderr)
	}
	stdout, _, err = command(t.Context(), t, "trace", "--query", serve(t, reply(200, text)), "--json", "7ace")
	if err != nil || stdout != text+"\n" {
		t.Errorf("%v: %s", err, stdout)
	}
}

func TestSearchTable(t *testing.T) {
	body := `{"summaries":[{"traceId":"` + strings.Repeat("7", 32) + `","rootServiceName":"wéb","rootOperationName":"GET /漢字",` +
		`"minStartTimeUnixNano":"1700000000000000999","maxEndTimeUnixNano":"1700000001234567000","spanCount":12,"errorSpanCount":3,` +
		`"services":[{"name":"a"}]},{"traceId":"` + strings.Repeat("e", 32) + `","rootServiceName":"cart\u001b","orphanSpanCount":4,` +
		`"minStartTimeUnixNano":"1700000090000000000","maxEndTimeUnixNano":"1","spanCount":4},{}],"warnings":["result is incomplete"]}`
	url := serve(t, reply(200, body))
	stdout, stderr, err := command(t.Context(), t, "search", "--query", url, "--limit=3")
	if err != nil || stderr != "warning: result is incomplete\nshowing 3 traces; there may be more (--limit)\n" {
		t.Errorf("%v: %s", err, stderr)
	}
	checkGolden(t, "search", stdout)
	stdout, _, err = command(t.Context(), t, "search", "--query", url, "--json")
	if err != nil || stdout != body+"\n" {
		t.Errorf("%v: %s", err, stdout)
	}
	stdout, stderr, err = command(t.Context(), t, "search", "--query", serve(t, reply(200, `{"summaries":[]}`)))
	if err != nil || stdout != "" || stderr != "no matching traces\n" {
		t.Errorf("%v: %s%s", err, stdout, stderr)
	}
}

// A service without summaries is searched for whole traces. It may respond with 404 or with a page.
func TestSearchWithoutSummaries(t *testing.T) {
	one := answer(
		made{id: "2", parent: "1", service: "cart", operation: "load", start: 50, duration: 2000, failed: true},
		made{id: "1", service: "wéb", operation: "GET /漢字", start: 60, duration: 1000, failed: true},
		made{id: "0", service: "wéb", operation: "later", start: 70, duration: 1000})
	two := strings.ReplaceAll(answer(
		made{id: "1", parent: "2", service: "cart", operation: "child", duration: 1},
		made{id: "2", parent: "3", service: "cart", operation: "late\n", start: 90_000_000, duration: 1}), "7ace", "0ff")
	cycle := strings.ReplaceAll(answer(made{id: "1", parent: "1", service: "cart", operation: "self"}), "7ace", "c0c")
	data := func(a string) string {
		return strings.TrimSuffix(strings.TrimPrefix(a, `{"data":[`), `],"total":0,"limit":0,"offset":0,"errors":null}`)
	}
	body := `{"data":[` + strings.Join([]string{data(one), data(two), data(cycle), data(answer())}, ",") +
		`],"errors":[{"msg":"trace not found","traceID":"5"}]}`
	for _, missing := range []func(http.ResponseWriter, *http.Request){http.NotFound, reply(200, "<!doctype html>")} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.String() {
			case "/base/api/traces?end=1795284000000000&limit=20&service=wb&start=1795280400000000":
				reply(200, body)(w, r)
			default:
				missing(w, r)
			}
		})
		stdout, stderr, err := command(t.Context(), t, "search", "--query", url, "--service=wb")
		if err != nil || stderr != "warning: trace not found: 5\n" {
			t.Errorf("%v: %s", err, stderr)
		}
		checkGolden(t, "search-traces", stdout)
		if _, _, err := command(t.Context(), t, "search", "--query", url, "--service=wb", "{ error }"); err == nil ||
			!strings.Contains(err.Error(), "too old to support search expressions") {
			t.Errorf("search expression without support by the server: %v", err)
		}
	}
}

// On a narrow terminal only names are cut, so that ids can be copied.
func TestTablesOnNarrowTerminals(t *testing.T) {
	all := []summary{{id: strings.Repeat("7", 32), root: "web: " + strings.Repeat("x", 50), start: 1, duration: time.Hour}}
	for columns, root := range map[int]string{100: "web: xxxxxxxxxxxxxx…", 115: "web: xxxxxxxxxxxxxxxxxxxxxxxxx…", 300: all[0].root} {
		var b bytes.Buffer
		if err := writeSummaries(&b, screen{width: columns, terminal: true}, time.UTC, all); err != nil {
			t.Fatal(err)
		}
		if text := b.String(); !strings.Contains(text, " "+root+" ") || !strings.HasSuffix(text, " "+all[0].id+"\n") {
			t.Errorf("%d columns:\n%s", columns, text)
		}
	}
}

func TestServices(t *testing.T) {
	f := func(body, wantOut, wantErr string, args ...string) {
		t.Helper()
		stdout, stderr, err := command(t.Context(), t, "services", append(args, "--query", serve(t, reply(200, body)))...)
		if err != nil || stdout != wantOut || stderr != wantErr {
			t.Errorf("%v: %q, %q, want %q, %q", err, stdout, stderr, wantOut, wantErr)
		}
	}
	f(`{"data":["b","a\nc","漢"],"total":3}`, "a\\nc\nb\n漢\n", "")
	f(`{"data":null}`, "", "no services found\n")
	f(`{"data":["b"]}`, `{"data":["b"]}`+"\n", "", "--json")
	f(`{"data":[{"name":"b","spanKind":"server"},{"name":"a","spanKind":"client"},{"name":"a","spanKind":""}]}`,
		"KIND    OPERATION\n        a\nclient  a\nserver  b\n", "", "web")
	f(`{"data":[]}`, "", `service \x1b has no operations`+"\n", "\x1b")
}

// JSON for a terminal has escapes for characters that could control it, and the same value.
func TestJSONOnATerminal(t *testing.T) {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	err := copyPrintable(w, strings.NewReader("{\n\t\"a\": \"ü漢\\u001b\u009b\u202e\x7f\xff\U000e0041\"}"))
	if err != nil || w.Flush() != nil {
		t.Fatal(err)
	}
	const want = "{\n\t\"a\": \"ü漢\\u001b" + `\u009b\u202e\u007f\ufffd\udb40\udc41` + "\"}"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// Responses with too many items are rejected before they are in memory.
func TestTooManyItems(t *testing.T) {
	for _, body := range []string{
		`{"data":[{"spans":[{},{},{}]}]}`, `{"data":[{},{},{}]}`, `{"data":[{"processes":{"1":{},"2":{},"3":{}}}]}`,
	} {
		r := newReader(strings.NewReader(body), false)
		r.remaining = 2
		if _, err := r.answer("data", func() error { _, err := r.trace(); return err }); !errors.Is(err, errTooMany) {
			t.Errorf("%s: %v", body, err)
		}
	}
	r := newReader(strings.NewReader(answer(made{id: "1", more: `,"warnings":[` + strings.Repeat(`"w",`, 99) + `"w"]`})), false)
	_, err := r.answer("data", func() error {
		trace, err := r.trace()
		if w := trace.spans[0].warnings; len(w) != maxWarnings+1 || w[maxWarnings] != "more warnings omitted; use --json to see them" {
			t.Errorf("got %q", w)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestCommands(t *testing.T) {
	for _, c := range Commands() {
		if c.Name == "" || c.Doc == "" || c.Setup == nil || strings.HasSuffix(c.Doc, ".") {
			t.Errorf("%+v", c)
		}
	}
}

// A search with several flags that finds nothing says that one span must match all of them.
func TestSearchHint(t *testing.T) {
	url := serve(t, reply(200, `{"summaries":[]}`))
	for hint, args := range map[bool][][]string{
		true:  {{"--service=web", "--errors"}, {"--operation=a", "--min=1s"}, {"--tag=a=b", "--service=web"}},
		false: {{}, {"--service=web"}, {"--errors", "--tag=a=b"}, {"{ error }"}},
	} {
		for _, a := range args {
			_, stderr, err := command(t.Context(), t, "search", append(a, "--query", url)...)
			if err != nil || !strings.HasPrefix(stderr, "no matching traces") || strings.Contains(stderr, "one span must match all") != hint {
				t.Errorf("%q: %v, %q", a, err, stderr)
			}
		}
	}
}
