package commands_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// TestTraceCommands sends a trace and reads it with the commands trace, search and services.
func TestTraceCommands(t *testing.T) {
	harness.SkipIfShort(t)
	p := harness.RunAllInOne(t, t.TempDir(), "exporters::disk::reserve=0")
	start := time.Now().Add(-time.Minute).Truncate(time.Second)
	const id = "5b8efff798038103d269b633813fc60c"
	span := func(id, parent, name string, from, to time.Duration, more string) string {
		at := func(d time.Duration) int64 { return start.Add(d).UnixNano() }
		return fmt.Sprintf(`{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"%s","parentSpanId":"%s","name":"%s",`+
			`"startTimeUnixNano":"%d","endTimeUnixNano":"%d"%s}`, id, parent, name, at(from), at(to), more)
	}
	resource := func(service string, spans ...string) string {
		return fmt.Sprintf(`{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"%s"}}]},"scopeSpans":[{"spans":[%s]}]}`,
			service, strings.Join(spans, ","))
	}
	body := `{"resourceSpans":[` + resource("shop", span("000000000000000a", "", "GET /cart", 0, time.Second, `,"kind":2`)) + "," +
		resource("cart",
			span("000000000000000b", "000000000000000a", "load\\u001b[2J", 100*time.Millisecond, 600*time.Millisecond, `,"status":{"code":2}`),
			span("000000000000000c", "000000000000000f", "late", time.Second, time.Second,
				`,"attributes":[{"key":"user","value":{"stringValue":"ann"}}]`)) + `]}`
	p.PostJSON(body)
	http.DefaultClient.CloseIdleConnections()
	query := p.QueryURL()
	f := func(code int, want string, args ...string) {
		t.Helper()
		got, stdout, stderr := traceCommand(t, append(args, "--query", query)...)
		if got != code || stdout+stderr != want {
			t.Errorf("%q: exit code %d\n%s%s\nwant %d\n%s", args, got, stdout, stderr, code, want)
		}
	}
	f(0, "cart\nshop\n", "services")
	f(0, "KIND    OPERATION\nserver  GET /cart\n", "services", "shop")
	when := start.UTC().Format("2006-01-02 15:04:05.000")
	found := "START (UTC)              DURATION  SPANS  ERRORS  ORPHANS  ROOT             TRACE\n" +
		when + "        1s      3       1        1  shop: GET /cart  " + id + "\n"
	f(0, found, "search")
	f(0, found, "search", "--service=cart", "--errors", "--min=100ms", "--max=500ms")
	f(0, found, "search", "--service=cart", "--tag", "user=ann", "--operation=late")
	f(0, "no matching traces; one span must match all flags. If different spans of a trace may match them, "+
		"search for example for '{ service = \"web\" } && { error }'\n", "search", "--service=shop", "--errors")
	f(0, "no matching traces\n", "search", "--from=7d", "--to=1h")
	f(0, `trace 5b8efff798038103d269b633813fc60c
`+when+`000 UTC, 1s, 3 spans, 1 error, 1 span with a missing parent
2 services: shop, cart

                       0s                    500ms                   1s
shop: GET /cart        ████████████████████████████████████████████████       1s
└ cart: load\x1b[2J  !     █████████████████████████                       500ms
cart: late           ?                                                │       0s
  ? parent 000000000000000f is missing
`, "trace", "--raw", id)
	f(1, "tracing: trace 1: status 404: trace not found\n", "trace", "1")
	_, stdout, _ := traceCommand(t, "trace", "--query", query, "--json", "--raw", id)
	if !strings.HasPrefix(stdout, `{"data":[{"traceID":"`+id) {
		t.Errorf("the answer of the API is %s", stdout)
	}
	code, _, stderr := traceCommand(t, "trace", "--query", query, "--verbose", id)
	if code != 2 || !strings.HasPrefix(stderr, "tracing: unknown flag --verbose") || !strings.Contains(stderr, "usage: tracing trace ID ") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// traceCommand runs a command in the time zone UTC, and returns its exit code and output.
func traceCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(harness.Binary(t), args...)
	cmd.Env = append(os.Environ(), "TZ=UTC")
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), log.String()
}
