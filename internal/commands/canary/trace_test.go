package canary

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// The content of traces is an interface: other versions of the program, and users with a recorded
// seed, expect the same.
func TestTracesStayTheSame(t *testing.T) {
	const file = "testdata/trace.golden"
	tr := generate(1, someTime)
	got, err := json.MarshalIndent(struct {
		Sent  string
		Shown *shownTrace
	}{hex.EncodeToString(tr.encode()), tr.show()}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, file, append(got, '\n'))
}

// The response that the canary expects equals the response that the current query API returns for
// the same spans.
func TestExpectationsAreWhatTheAPIShows(t *testing.T) {
	for i := range 500 {
		tr := generate(7, someTime.Add(time.Duration(i)*time.Second))
		got, err := parseAnswer(200, answerOf(t, tr.encode()))
		if err != nil {
			t.Fatal(err)
		}
		if result, detail := (comparison{}).traces(tr.show(), got); result != OK {
			t.Fatalf("trace %d: %s: %s", i, result, detail)
		}
	}
}

// Together the traces contain all the difficult values.
func TestTracesHaveEverything(t *testing.T) {
	seen := map[string]bool{}
	ids := map[otlpdata.TraceID]bool{}
	for i := range 200 {
		tr := generate(1, someTime.Add(time.Duration(i)*time.Second))
		ids[tr.id] = true
		seen["short id"] = seen["short id"] || len(tr.id.String()) == 16
		if root := tr.spans[0]; root.end > uint64(someTime.Add(time.Duration(i)*time.Second).UnixNano()) {
			t.Errorf("trace %d ends in the future", i)
		}
		for _, s := range tr.spans {
			seen["kind "+kindNames[s.kind]] = true
			seen["service "+s.service.name] = true
			seen["state"] = seen["state"] || s.state != ""
			seen["flags"] = seen["flags"] || s.flags != 0
			seen["error"] = seen["error"] || s.status == otlpdata.StatusError
			seen["link"] = seen["link"] || len(s.links) > 0
			seen["event"] = seen["event"] || len(s.events) > 0
			for _, a := range s.attributes {
				seen["type "+a.shown.Type] = true
			}
			p := tr.parentOf(&s)
			if p == nil {
				p = &s
			}
			if s.start < p.start || s.end > p.end || s.end < s.start {
				t.Errorf("trace %d: span %s does not lie in its parent", i, s.id)
			}
		}
	}
	want := []string{"short id", "state", "flags", "error", "link", "event", "service canary-bücher", "service canary-mail",
		"kind ", "kind internal", "kind server", "kind client", "kind producer", "kind consumer",
		"type string", "type bool", "type int64", "type float64", "type binary"}
	for _, w := range want {
		if !seen[w] {
			t.Errorf("no trace has %q", w)
		}
	}
	if len(ids) != 200 || generate(1, someTime).id == generate(2, someTime).id {
		t.Error("traces share ids")
	}
}

func (t *trace) parentOf(s *span) *span {
	i := slices.IndexFunc(t.spans, func(p span) bool { return p.id == s.parent })
	if i < 0 {
		return nil
	}
	return &t.spans[i]
}
