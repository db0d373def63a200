package delivery_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// storeQuestion is a request of the web UI whose answer says whether it is complete.
type storeQuestion struct {
	route  string
	params url.Values
	// counts returns numbers by what they count. An incomplete result has a part of each. It is
	// nil if an incomplete response may have others, as calls whose caller cannot be read.
	counts func(t *testing.T, data json.RawMessage) map[string]float64
}

func (q *storeQuestion) String() string { return q.route + "?" + q.params.Encode() }

// storeQuestions returns questions of all kinds that read rows of blocks.
func storeQuestions(began time.Time) (list []*storeQuestion) {
	from, to := fmt.Sprint(began.Add(-time.Minute).UnixNano()), fmt.Sprint(began.Add(time.Minute).UnixNano())
	add := func(route string, counts func(*testing.T, json.RawMessage) map[string]float64, params ...string) {
		q := &storeQuestion{route, url.Values{"start": {from}, "end": {to}}, counts}
		for i := 0; i+1 < len(params); i += 2 {
			q.params.Set(params[i], params[i+1])
		}
		list = append(list, q)
	}
	for _, text := range []string{"", `{ duration > 100us }`, `{ duration > 2ms || !(kind = client) }`} {
		add("groups", groupCounts, "q", text, "by", "service,name", "limit", "1000")
		add("heatmap", heatmapCounts, "q", text, "step", "1s")
		add("compare", facetCounts, "q", text, "fields", "service,name", "values", "1000", "sel_max", "1ms")
	}
	add("heatmap", nil, "of", "traces", "step", "1m")
	add("compare", nil, "fields", "name", "values", "1000", "sel_q", `{ service = "shop" } >> { duration > 2ms }`)
	for _, text := range []string{
		`{ service = "shop" } >> { service = "bank" && duration > 1us }`, `{ kind = client } > { kind = server }`,
		`{ name =~ "pay 1.*" } && { status = error }`, `{ duration > 1ns || duration < 1h }`, `{ traceDuration > 1ns && .order != "7" }`,
	} {
		add("search", foundTraces, "q", text, "limit", "1000")
	}
	add("map", nil)
	add("services", nil)
	return list
}

// answer is a response to a question. Data and counts of a complete one are the same at any time.
type answer struct {
	complete bool
	data     any
	counts   map[string]float64
}

// askStore asks a question. It fails the test unless the status is 200.
func askStore(t *testing.T, p *harness.Process, q *storeQuestion) (a answer) {
	t.Helper()
	status, body := harness.Fetch(t, p.QueryURL()+"/api/ui/v1/"+q.String())
	if status != http.StatusOK {
		t.Fatalf("%s: status %d: %s", q, status, body)
	}
	var data json.RawMessage
	if q.route == "search" {
		data, a.complete = searchAnswer(t, body)
	} else {
		var envelope harness.UIAnswer
		if err := json.Unmarshal(body, &envelope); err != nil {
			t.Fatalf("%s: %v: %s", q, err, body)
		}
		data, a.complete = envelope.Data, len(envelope.Errors) == 0
	}
	if err := json.Unmarshal(data, &a.data); err != nil {
		t.Fatalf("%s: %v: %s", q, err, body)
	}
	if object, ok := a.data.(map[string]any); ok {
		delete(object, "scanned")   // a store may count from statistics what it cannot read
		delete(object, "exemplars") // a sample, which depends on what has been flushed
	}
	if q.counts != nil {
		a.counts = q.counts(t, data)
	}
	return a
}

// askAll asks all questions and returns the responses in their order.
func askAll(t *testing.T, p *harness.Process, list []*storeQuestion) (answers []answer) {
	t.Helper()
	for _, q := range list {
		answers = append(answers, askStore(t, p, q))
	}
	return answers
}

// checkAnswers compares the responses of a damaged store with those of the sound one: a complete
// one is the same, an incomplete one has nothing else and counts nothing more often. It returns the
// number of incomplete ones.
func checkAnswers(t *testing.T, list []*storeQuestion, got, want []answer) (incomplete int) {
	t.Helper()
	for i, a := range got {
		if a.complete && !reflect.DeepEqual(a.data, want[i].data) {
			t.Errorf("%s: a complete answer is wrong: %s", list[i], difference(a.data, want[i].data))
		}
		if a.complete {
			continue
		}
		incomplete++
		for what, n := range a.counts {
			if n > want[i].counts[what] {
				t.Errorf("%s: the incomplete answer counts %v of %s, the sound store has %v", list[i], n, what, want[i].counts[what])
			}
		}
	}
	return incomplete
}

// difference describes in which members two answers differ.
func difference(got, want any) (text string) {
	g, isObject := got.(map[string]any)
	w, _ := want.(map[string]any)
	if !isObject {
		return fmt.Sprintf("got %v, want %v", got, want)
	}
	for name := range w {
		if !reflect.DeepEqual(g[name], w[name]) {
			text += fmt.Sprintf("got %s %v, want %v; ", name, g[name], w[name])
		}
	}
	return text
}

// searchAnswer returns the ids of the traces that a search has found, sorted.
func searchAnswer(t *testing.T, body []byte) (ids json.RawMessage, complete bool) {
	t.Helper()
	found := []string{}
	ended := false
	for line := range bytes.Lines(body) {
		var l struct {
			Trace   *struct{ TraceID string }
			Outcome *struct{ Complete bool }
			Error   json.RawMessage
		}
		if err := json.Unmarshal(line, &l); err != nil || l.Error != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if l.Trace != nil {
			found = append(found, l.Trace.TraceID)
		}
		if l.Outcome != nil {
			ended, complete = true, l.Outcome.Complete
		}
	}
	if !ended {
		t.Fatalf("no outcome in %s", body)
	}
	slices.Sort(found)
	ids, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	return ids, complete
}

func foundTraces(t *testing.T, data json.RawMessage) map[string]float64 {
	counts := map[string]float64{}
	for _, id := range decode[[]string](t, data) {
		counts[id]++
	}
	return counts
}

func groupCounts(t *testing.T, data json.RawMessage) map[string]float64 {
	groups := decode[struct {
		Groups struct {
			Values        [][]string
			Count, Errors []float64
		}
	}](t, data).Groups
	counts := map[string]float64{}
	for i := range groups.Count {
		var values []string
		for _, column := range groups.Values {
			values = append(values, column[i])
		}
		key := strings.Join(values, "/")
		counts[key], counts["errors of "+key] = groups.Count[i], groups.Errors[i]
	}
	return counts
}

func heatmapCounts(t *testing.T, data json.RawMessage) map[string]float64 {
	cells := decode[struct {
		Cells struct {
			Column, Bucket []int
			Count, Errors  []float64
		}
	}](t, data).Cells
	counts := map[string]float64{}
	for i := range cells.Count {
		key := fmt.Sprintf("column %d, bucket %d", cells.Column[i], cells.Bucket[i])
		counts[key], counts["errors in "+key] = cells.Count[i], cells.Errors[i]
	}
	return counts
}

func facetCounts(t *testing.T, data json.RawMessage) map[string]float64 {
	counts := map[string]float64{}
	for _, f := range decode[struct {
		Facets []struct {
			Field  string
			Values struct {
				Text            []string
				Count, Selected []float64
			}
		}
	}](t, data).Facets {
		for i, text := range f.Values.Text {
			counts[f.Field+" "+text], counts["selected "+f.Field+" "+text] = f.Values.Count[i], f.Values.Selected[i]
		}
	}
	return counts
}

func decode[T any](t *testing.T, data json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return v
}
