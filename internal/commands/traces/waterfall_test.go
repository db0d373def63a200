package traces

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// made describes a span of a test. Times are in milliseconds since second 1,700,000,000.
type made struct {
	id, parent, service, operation string
	start, duration                int
	failed                         bool
	more                           string // members of the JSON, each with a comma before it
}

// answer returns the API response for a trace.
func answer(spans ...made) string {
	var list, processes []string
	quote := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	for i, s := range spans {
		references, tags := "", ""
		if s.parent != "" {
			references = fmt.Sprintf(`{"refType":"CHILD_OF","traceID":"7ace","spanID":%s}`, quote(s.parent))
		}
		if s.failed {
			tags = `{"key":"error","type":"bool","value":true}`
		}
		list = append(list, fmt.Sprintf(`{"traceID":"7ace","spanID":%s,"operationName":%s,"references":[%s],"startTime":%d,"duration":%d,`+
			`"tags":[%s],"logs":[],"processID":"p%d","warnings":null%s}`,
			quote(s.id), quote(s.operation), references, 1_700_000_000_000_000+s.start*1000, s.duration*1000, tags, i, s.more))
		processes = append(processes, fmt.Sprintf(`"p%d":{"serviceName":%s,"tags":[]}`, i, quote(s.service)))
	}
	return `{"data":[{"traceID":"7ace","spans":[` + strings.Join(list, ",") + `],"processes":{` + strings.Join(processes, ",") +
		`},"warnings":null}],"total":0,"limit":0,"offset":0,"errors":null}`
}

// render returns the waterfall of a response.
func render(t testing.TB, answer string, verbose bool, maxSpans int, s screen) string {
	t.Helper()
	var b strings.Builder
	r := newReader(strings.NewReader(answer), verbose)
	_, err := r.answer("data", func() error {
		trace, err := r.trace()
		if err != nil {
			return err
		}
		return writeWaterfall(&b, newForest(trace, maxSpans), s, time.UTC)
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWaterfalls(t *testing.T) {
	f := func(name string, spans ...made) {
		t.Helper()
		checkGolden(t, name, render(t, answer(spans...), false, defaultMaxSpans, screen{width: 80}))
	}
	f("plain",
		made{id: "3", parent: "1", service: "cart", operation: "load", start: 300, duration: 500},
		made{id: "1", service: "web", operation: "GET /", start: 0, duration: 1000, failed: true},
		made{id: "4", parent: "3", service: "db", operation: "SELECT", start: 350, duration: 100, failed: true},
		made{id: "2", parent: "1", service: "auth", operation: "check", start: 10, duration: 200},
		made{id: "5", parent: "3", service: "db", operation: "SELECT", start: 500, duration: 300})
	f("unicode",
		made{id: "1", service: "bücher", operation: "GET /漢字漢字漢字漢字漢字漢字漢字漢字漢字", duration: 1000},
		made{id: "2", parent: "1", service: "카트", operation: "넣다 🚀", start: 100, duration: 500},
		made{id: "3", parent: "2", service: "e\u0301te\u0301", operation: "✉ ｆｕｌｌ", start: 200, duration: 100})
	f("zero",
		made{id: "1", service: "web", operation: "instant"},
		made{id: "2", parent: "1", service: "web", operation: "instant, too"})
	f("zero-inside",
		made{id: "1", service: "web", operation: "GET /", duration: 1000},
		made{id: "2", parent: "1", service: "web", operation: "cache hit", start: 500},
		made{id: "3", parent: "1", service: "web", operation: "flush", start: 1000})
	f("clocks",
		made{id: "1", service: "web", operation: "GET /", start: 100, duration: 100},
		made{id: "2", parent: "1", service: "cart", operation: "starts before its parent", start: 40, duration: 100},
		made{id: "3", parent: "1", service: "cart", operation: "ends after it", start: 150, duration: 100},
		made{id: "4", parent: "1", service: "cart", operation: "no start", start: -1_700_000_000_000},
		made{id: "5", parent: "1", service: "cart", operation: "ends before its start", start: 150,
			more: `,"duration":18446744073709551615`})
	f("orphans",
		made{id: "2", parent: "1", service: "cart", operation: "load", start: 100, duration: 500},
		made{id: "3", parent: "2", service: "db", operation: "SELECT", start: 200, duration: 100},
		made{id: "5", parent: "4", service: "mail", operation: "send", start: 300, duration: 100,
			more: `,"warnings":["clock skew adjustment disabled; not applying calculated delta of 1s"]`})
	f("circles",
		made{id: "2", parent: "3", service: "a", operation: "round", start: 20, duration: 10},
		made{id: "3", parent: "4", service: "a", operation: "and round", start: 30, duration: 10},
		made{id: "4", parent: "2", service: "a", operation: "it goes", start: 10, duration: 10},
		made{id: "5", parent: "4", service: "b", operation: "beside", start: 5, duration: 10},
		made{id: "6", parent: "6", service: "b", operation: "alone", start: 50, duration: 10},
		made{id: "7", service: "b", operation: "twin", start: 60, duration: 10},
		made{id: "7", parent: "7", service: "b", operation: "other twin", start: 61, duration: 10})
	f("hostile",
		made{id: "\x1b]0;x\a", service: "\x1b[31mred", operation: "line\nfeed \u202eesrever", duration: 10},
		made{id: "2", parent: "\r\n", service: "", operation: "", duration: 10, more: `,"warnings":["\u001b[2J","\u009b1A"]`})
	f("none")
}

// Beyond some depth the tree is shown as a number, and all lines keep their columns.
func TestDeepTraces(t *testing.T) {
	spans := []made{{id: "0", service: "s", operation: "step 0", duration: 1000}}
	for i := 1; i < 40; i++ {
		step := made{id: fmt.Sprint(i), parent: fmt.Sprint(i - 1), service: "s", operation: fmt.Sprint("step ", i), start: i}
		step.duration = 1000 - 2*i
		spans = append(spans, step)
	}
	checkGolden(t, "deep", render(t, answer(spans...), false, 1000, screen{width: 80}))
	for i := 40; i < 20_000; i++ {
		spans = append(spans, made{id: fmt.Sprint(i), parent: fmt.Sprint(i - 1), service: "s", operation: "deeper", start: 40})
	}
	out := render(t, answer(spans...), false, 100_000, screen{width: 60})
	if n := strings.Count(out, "\n"); n != 20_000+5 || !strings.Contains(out, "…19999 ") {
		t.Errorf("%d lines", n)
	}
	for line := range strings.Lines(out) {
		if width(line) > 60+1 { // with the line feed
			t.Fatalf("%q takes %d columns", line, width(line))
		}
	}
}

func TestHiddenSpans(t *testing.T) {
	spans := []made{
		{id: "1", service: "web", operation: "GET /", duration: 100},
		{id: "2", parent: "1", service: "a", operation: "first", start: 10, duration: 10},
		{id: "3", parent: "2", service: "a", operation: "below the first", start: 12, duration: 5, failed: true},
		{id: "4", parent: "3", service: "a", operation: "deepest", start: 13, duration: 2, failed: true},
		{id: "5", parent: "1", service: "b", operation: "second", start: 30, duration: 10},
		{id: "6", parent: "1", service: "b", operation: "third", start: 50, duration: 10},
		{id: "7", parent: "6", service: "b", operation: "below the third", start: 55, duration: 3},
	}
	for _, n := range []int{1, 3, 6, 7} {
		checkGolden(t, fmt.Sprintf("first-%d", n), render(t, answer(spans...), false, n, screen{width: 80}))
	}
}

func TestDetails(t *testing.T) {
	const more = `,"references":[
			{"refType":"FOLLOWS_FROM","traceID":"7ace","spanID":"0"},{"refType":"CHILD_OF","traceID":"other","spanID":"9"},
			{"refType":"CHILD_OF","traceID":"7ace","spanID":"1"},{"refType":"CHILD_OF","traceID":"7ace","spanID":"2"}],
		"tags":[{"key":"s","value":"text"},{"key":"number as text","value":"12"},{"key":"n","value":12.50},{"key":"b","value":false},
			{"key":"empty","value":""},{"key":"lines","value":"1\n2\u001b[0m"},{"key":"none"},{"key":"error","value":"true"}],
		"logs":[{"timestamp":1700000000015000,"fields":[{"key":"event","value":"retry"},{"key":"n","value":1}]},{"fields":[]},
			{"timestamp":1699999999999000,"fields":null}]`
	text := answer(made{id: "1", service: "web", operation: "GET /", duration: 100},
		made{id: "2", service: "db", operation: "SELECT", start: 10, duration: 10, more: more},
		made{id: "3", parent: "2", service: "db", operation: "SELECT", start: 20, duration: 10, more: `,"processID":"p1"`})
	text = strings.Replace(text, `"db","tags":[]`, `"db","tags":[{"key":"host","value":"h1"}]`, 1)
	checkGolden(t, "details", render(t, text, true, 10, screen{width: 80}))
	if plain := render(t, text, false, 10, screen{width: 80}); strings.Contains(plain, "retry") || strings.Count(plain, "\n") != 5+3 {
		t.Errorf("details without -v:\n%s", plain)
	}
	broken := render(t, answer(made{id: "1", more: `,"tags":{"a":1},"logs":7.5`}), true, 1, screen{width: 80})
	checkGolden(t, "unreadable", broken)
}

func TestColorsAndWidths(t *testing.T) {
	text := answer(
		made{id: "1", service: "web", operation: "GET /", duration: 1000},
		made{id: "2", parent: "1", service: "cart", operation: "load", start: 100, duration: 500, failed: true},
		made{id: "3", parent: "0", service: "db", operation: "SELECT a, b, c, d, e, f FROM g", start: 50, duration: 10})
	checkGolden(t, "colors", render(t, text, false, 10, screen{width: 100, terminal: true, color: true}))
	checkGolden(t, "narrow", render(t, text, false, 10, screen{width: minWidth, terminal: true}))
}

func TestScreens(t *testing.T) {
	if got := screenOf(&strings.Builder{}, func(string) string { return "" }); got != (screen{width: defaultWidth}) {
		t.Errorf("got %+v", got)
	}
	plain, painted := screen{}, screen{color: true}
	if plain.paint(red, "x") != "x" || painted.paint(red, "x") != "\x1b[1;31mx\x1b[0m" || painted.paint(red, "") != "" {
		t.Error("wrong colors")
	}
}

// Writing stops after a write error.
func TestWriteError(t *testing.T) {
	spans := make([]made, 5000)
	for i := range spans {
		spans[i] = made{id: fmt.Sprint(i), service: "s", operation: "o"}
	}
	r := newReader(strings.NewReader(answer(spans...)), false)
	w := &closed{}
	_, err := r.answer("data", func() error {
		trace, err := r.trace()
		if err != nil {
			return err
		}
		return writeWaterfall(w, newForest(trace, 5000), screen{width: 80}, time.UTC)
	})
	if !errors.Is(err, errClosed) || w.writes != 1 {
		t.Errorf("%v after %d writes", err, w.writes)
	}
}

var errClosed = errors.New("closed")

type closed struct{ writes int }

func (c *closed) Write([]byte) (int, error) { c.writes++; return 0, errClosed }
