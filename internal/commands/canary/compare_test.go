package canary

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/soak"
)

// parse decodes a trace like a response.
func parse(t testing.TB, traceJSON string) *shownTrace {
	t.Helper()
	got, err := parseAnswer(200, []byte(`{"data":[`+traceJSON+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	return &got[0]
}

func shownJSON(t testing.TB, tr *shownTrace) string {
	t.Helper()
	b, err := json.Marshal(tr)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDifferences(t *testing.T) {
	tr := generate(1, someTime)
	want := tr.show()
	f := func(result Result, text string, change func(*shownTrace)) {
		t.Helper()
		got := parse(t, shownJSON(t, want))
		change(got)
		r, detail := comparison{}.traces(want, []shownTrace{*got})
		if r != result || !strings.Contains(detail, text) {
			t.Errorf("got %s: %q, want %s: %q", r, detail, result, text)
		}
	}
	tagNamed := func(tags []tag, key string) *tag {
		return &tags[slices.IndexFunc(tags, func(t tag) bool { return t.Key == key })]
	}
	f(OK, "", func(*shownTrace) {})
	f(OK, "", func(g *shownTrace) { slices.Reverse(g.Spans) })
	f(OK, "", func(g *shownTrace) { slices.Reverse(g.Spans[0].Tags) })
	f(Missing, "is missing (1 of", func(g *shownTrace) { g.Spans = g.Spans[1:] })
	f(Missing, "is missing", func(g *shownTrace) { g.Spans = nil })
	f(Wrong, "one copy too many", func(g *shownTrace) { g.Spans = append(g.Spans, g.Spans[2]) })
	f(Wrong, "one copy too many", func(g *shownTrace) { g.Spans[0].SpanID = "1" })
	f(Wrong, "start time", func(g *shownTrace) { g.Spans[1].Start++ })
	f(Wrong, "duration", func(g *shownTrace) { g.Spans[1].Duration-- })
	f(Wrong, "reference 0", func(g *shownTrace) { g.Spans[1].References[0].SpanID = "1" })
	f(Wrong, "number of references", func(g *shownTrace) { g.Spans[1].References = nil })
	f(Wrong, `tag "canary.span": got string "0", want int64 0`, func(g *shownTrace) {
		*tagNamed(g.Spans[0].Tags, "canary.span") = tag{"canary.span", "string", "0"}
	})
	f(Wrong, `tag "canary.span": got int64 "0", want int64 0`, func(g *shownTrace) { tagNamed(g.Spans[0].Tags, "canary.span").Value = "0" })
	f(Wrong, `tag "canary.span": got int64 []`, func(g *shownTrace) { tagNamed(g.Spans[0].Tags, "canary.span").Value = []any{} })
	f(Wrong, `is missing`, func(g *shownTrace) { g.Spans[0].Tags = g.Spans[0].Tags[1:] })
	f(Wrong, `tag "more": one copy too many`, func(g *shownTrace) { g.Spans[0].Tags = append(g.Spans[0].Tags, tag{"more", "bool", true}) })
	f(Wrong, "warning", func(g *shownTrace) { g.Spans[0].Warnings = []string{"w"} })
	f(Wrong, "warning", func(g *shownTrace) { g.Warnings = []string{"w"} })
	f(Wrong, `process "p9"`, func(g *shownTrace) { g.Spans[0].ProcessID = "p9" })
	f(Wrong, "service", func(g *shownTrace) { g.Spans[0].ProcessID = "canary-mail" })

	if r, _ := (comparison{}).traces(want, nil); r != Missing {
		t.Errorf("no trace is %s", r)
	}
	if r, _ := (comparison{}).traces(want, []shownTrace{*want, *want}); r != Wrong {
		t.Errorf("two traces are %s", r)
	}
}

// Any change of a response is detected.
func TestEveryChangeIsNoticed(t *testing.T) {
	soak.SkipIfRaced(t)
	for i := range 4 {
		want := generate(1, someTime.Add(time.Duration(i)*time.Second)).show()
		want.Spans = want.Spans[:3] // of two services
		delete(want.Processes, "canary-bücher")
		delete(want.Processes, "canary-mail")
		text := shownJSON(t, want)
		var root any
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		if err := dec.Decode(&root); err != nil {
			t.Fatal(err)
		}
		changes := 0
		eachChange(root, "", func(where string) {
			changes++
			changed, err := json.Marshal(root)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parseAnswer(200, []byte(`{"data":[`+string(changed)+`]}`))
			if err != nil {
				return // noticed, too
			}
			if r, _ := (comparison{}).traces(want, got); r == OK {
				t.Errorf("trace %d: a change of %s was not noticed", i, where)
			}
		})
		if changes < 200 {
			t.Errorf("trace %d: only %d changes", i, changes)
		}
	}
}

// eachChange changes the values below v, one at a time, and calls f.
func eachChange(v any, where string, f func(where string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			before := v[k]
			for _, other := range others(before) {
				v[k] = other
				f(fmt.Sprintf("%s.%s to %v", where, k, other))
			}
			v[k] = before
			eachChange(before, where+"."+k, f)
		}
	case []any:
		for i := range v {
			eachChange(v[i], fmt.Sprintf("%s[%d]", where, i), f)
		}
	}
}

// others returns values near v.
func others(v any) []any {
	switch v := v.(type) {
	case string:
		return []any{v + "x", json.Number("0")}
	case bool:
		return []any{!v, fmt.Sprint(v)}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return []any{n + 1, n - 1}
		}
		x, _ := v.Float64()
		return []any{math.Nextafter(x, 0), v.String()}
	case []any:
		var out []any
		for i := range v {
			out = append(out, slices.Delete(slices.Clone(v), i, i+1), append(slices.Clone(v), v[i]))
		}
		return out
	}
	return nil
}

func TestIgnoredTags(t *testing.T) {
	want := generate(1, someTime).show()
	got := parse(t, shownJSON(t, want))
	for i := range got.Spans {
		got.Spans[i].Tags = append(got.Spans[i].Tags, tag{"cluster", "string", "eu"})
	}
	for id, p := range got.Processes {
		got.Processes[id] = process{p.Service, append(p.Tags, tag{"zone", "string", "1"})}
	}
	if r, detail := (comparison{ignored: []string{"zone", "cluster"}}).trace(want, got); r != OK {
		t.Errorf("%s: %s", r, detail)
	}
	if r, _ := (comparison{ignored: []string{"zone"}}).trace(want, got); r != Wrong {
		t.Errorf("got %s", r)
	}
}

// The comparison never panics, whatever the response is.
func FuzzAnswer(f *testing.F) {
	want := generate(1, someTime).show()
	f.Add(200, shownJSON(f, want))
	f.Add(200, `{"traceID":"1","spans":[{"tags":[{"key":"canary.span","value":{}}],"logs":[{}]}],"processes":{"":{}}}`)
	f.Add(404, `null`)
	f.Fuzz(func(t *testing.T, status int, traceJSON string) {
		got, err := parseAnswer(status, []byte(`{"data":[`+traceJSON+`],"errors":null}`))
		if err != nil {
			return
		}
		if r, detail := (comparison{}).traces(want, got); (r == OK) != (detail == "") {
			t.Errorf("%s: %q", r, detail)
		}
	})
}
