package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestQueries(t *testing.T) {
	queries, err := readQueries("queries.txt", "")
	if err != nil || len(queries) < 150 {
		t.Errorf("%d queries, want at least 150: %v", len(queries), err)
	}
	for _, file := range []string{"captured.txt", "../../extensions/query/internal/tempo/testdata/grafana/requests.txt"} {
		if queries, err := readQueries(file, ""); err != nil || len(queries) < 50 {
			t.Errorf("%s: %d queries, want at least 50: %v", file, len(queries), err)
		}
	}
	file := filepath.Join(t.TempDir(), "queries.txt")
	if err := os.WriteFile(file, []byte("# comment\nsearch { }\n! a reason\n\ntags span\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	queries, err = readQueries(file, "{")
	if want := (query{"search", "{ }", "search { }", "a reason"}); err != nil || len(queries) != 1 || queries[0] != want {
		t.Errorf("%+v: %v", queries, err)
	}
	request := query{kind: "get", text: "get api/search?q=%7B%7D+"}
	if got := request.String(); got != "get api/search?q={} " {
		t.Errorf("request %q", got)
	}
	if err := os.WriteFile(file, []byte("find { }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readQueries(file, ""); err == nil || !strings.Contains(err.Error(), "queries.txt:1: no query: find { }") {
		t.Errorf("unknown kind: %v", err)
	}
}

func TestDifferences(t *testing.T) {
	f := func(kind, a, b, want string) {
		t.Helper()
		status := func(body string) answer {
			if strings.HasPrefix(body, "{") {
				return answer{http.StatusOK, []byte(body)}
			}
			return answer{http.StatusBadRequest, []byte(body)}
		}
		got := difference(query{kind: kind}, status(a), status(b))
		if got != want {
			t.Errorf("%s and %s: %q, want %q", a, b, got, want)
		}
	}
	f("search", "bad", "other text", "")
	f("search", "bad", "{}", `status 400, here 200: bad | {}`)
	const trace = `{"traceID":"0a","rootServiceName":"s","spanSets":[{"matched":2,"spans":[{"spanID":"1","name":"n","attributes":[]}]}]}`
	f("search", `{"traces":[`+trace+`]}`, `{"traces":[`+strings.Replace(trace, "0a", "a", 1)+`]}`, "")
	f("search", `{"traces":[`+trace+`]}`, `{"traces":[`+strings.Replace(trace, `"matched":2`, `"matched":3`, 1)+`]}`,
		"0 only there, 0 only here, 1 differ of 3 and 3; a  matched: 2, here 3")
	f("search", `{"traces":[`+trace+`]}`, `{"traces":[]}`, "3 only there, 0 only here, 0 differ of 3 and 0; a: s  0ms, 1 sets, here none")
	const series = `{"series":[{"labels":[{"key":"a","value":{"intValue":"1"}}],"samples":[{"timestampMs":"5","value":0.1}]}]}`
	f("range", series, strings.Replace(series, "0.1", "0.10000000000000001", 1), "")
	f("range", series, strings.Replace(series, "0.1", "0.2", 1),
		`0 only there, 0 only here, 1 differ of 2 and 2; a={"intValue":"1"} at 5: 0.1, here 0.2`)
	f("values", `{"tagValues":[{"type":"int","value":"1"}]}`, `{"tagValues":[{"type":"string","value":"1"}]}`,
		"0 only there, 0 only here, 1 differ of 1 and 1; 1: int, here string")
	f("tags", `{"scopes":[{"name":"span","tags":["a","b"]}]}`, `{"scopes":[{"name":"span","tags":["b","a"]}]}`, "")
}
