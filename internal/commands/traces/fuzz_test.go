package traces

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"
)

// FuzzAnswer displays arbitrary responses in all ways. The output must not contain characters that
// control a terminal, and must show each span once.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(answer(made{id: "1", service: "web", operation: "GET /", duration: 1000},
		made{id: "2", parent: "1", service: "cart", operation: "load", start: 100, duration: 500, failed: true})), 1)
	f.Add([]byte(answer(made{id: "1", parent: "2"}, made{id: "2", parent: "1"}, made{id: "2", parent: "3", service: "\x1b漢\u0301"})), 9)
	f.Add([]byte(`{"data":[{"spans":[{"startTime":1e99,"duration":-1,"tags":[{"key":"error","value":true}],"logs":[{"fields":[{}]}]}]}]}`), 2)
	f.Add([]byte(`{"summaries":[{"traceId":"7","minStartTimeUnixNano":"1","maxEndTimeUnixNano":9e99,"spanCount":-1}],"warnings":["\n"]}`), 1)
	f.Add([]byte(`{"data":["a"],"errors":[{"msg":"\u202e"}]}`), 0)
	f.Fuzz(func(t *testing.T, body []byte, maxSpans int) {
		maxSpans = max(1, maxSpans)
		s := screen{width: minWidth + maxSpans%100}
		var out bytes.Buffer
		var all []summary
		r := newReader(bytes.NewReader(body), maxSpans%2 == 0)
		_, err := r.answer("data", func() error {
			trace, err := r.trace()
			if err != nil {
				return err
			}
			forest := newForest(trace, maxSpans)
			checkForest(t, forest, maxSpans)
			return writeWaterfall(&out, forest, s, time.UTC)
		})
		if err == nil && !json.Valid(body[:r.dec.InputOffset()]) {
			t.Error("invalid JSON accepted")
		}
		for list, element := range map[string]func(*reader) (summary, error){"data": (*reader).summarize, "summaries": (*reader).summary} {
			r := newReader(bytes.NewReader(body), false)
			r.answer(list, func() error { //nolint:errcheck // must not panic
				sum, err := element(r)
				all = append(all, sum)
				return err
			})
		}
		if err := writeSummaries(&out, s, time.UTC, all); err != nil {
			t.Error(err)
		}
		if text := strings.ReplaceAll(out.String(), "\n", ""); !isClean(text) {
			t.Errorf("unprintable output: %q", text)
		}
		it := tool{zone: time.UTC, getenv: func(string) string { return "" }}
		in := invocation(io.Discard)
		it.listServices(in, bytes.NewReader(body))   //nolint:errcheck // must not panic
		it.listOperations(in, bytes.NewReader(body)) //nolint:errcheck // must not panic
	})
}

// checkForest checks that each span is in exactly one tree, and that the maximum number of spans is
// shown.
func checkForest(t *testing.T, f *forest, maxSpans int) {
	t.Helper()
	hidden, walked := 0, 0
	//nolint:errcheck // the function returns no error
	f.walk(func(i int32) error { walked++; hidden += f.nodes[i].hidden; return nil })
	for _, i := range f.roots {
		if !f.nodes[i].shown {
			hidden += 1 + f.nodes[i].hidden
		}
	}
	if want := min(maxSpans, len(f.nodes)); f.shown != want || walked != want || walked+hidden != len(f.nodes) {
		t.Errorf("%d of %d spans shown (maximum %d), %d visited, %d hidden", f.shown, len(f.nodes), maxSpans, walked, hidden)
	}
}
