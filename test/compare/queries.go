package main

import (
	"fmt"
	"net/url"
	"os"
	"strings"
)

// query is a line of the file with the queries:
//
//	search { status = error }
//	range { } | rate()
//	instant { } | rate()
//	tags resource
//	values resource.service.name
//	get api/search?q=%7B%7D&start=START&end=END
//
// In get, START and END are the times of the spans in seconds, and TRACE is the id of a trace. Only
// its status is compared. A following line that begins with `!` explains why the answers differ,
// or, after `sometimes:`, may differ. Empty lines and lines that begin with # are ignored.
type query struct {
	kind, q     string
	text        string // the line
	explanation string
}

// String returns the line with readable parameters.
func (q query) String() string {
	if readable, err := url.QueryUnescape(q.text); err == nil && q.kind == "get" {
		return readable
	}
	return q.text
}

func readQueries(file, only string) (queries []query, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		line = strings.TrimSpace(line)
		explanation, isExplanation := strings.CutPrefix(line, "!")
		switch {
		case line == "" || line[0] == '#':
		case isExplanation && len(queries) > 0:
			queries[len(queries)-1].explanation = strings.TrimSpace(explanation)
		default:
			kind, q, ok := strings.Cut(line, " ")
			if !ok || !strings.Contains(" search range instant tags values get ", " "+kind+" ") {
				return nil, fmt.Errorf("%s:%d: no query: %s", file, n, line)
			}
			queries = append(queries, query{kind: kind, q: q, text: line})
		}
	}
	var out []query
	for _, q := range queries {
		if strings.Contains(q.text, only) {
			out = append(out, q)
		}
	}
	return out, nil
}
