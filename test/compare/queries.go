package main

import (
	"fmt"
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
//
// A following line that begins with `!` explains why the answers differ, or, after `sometimes:`,
// may differ. Empty lines and lines that
// begin with # are ignored.
type query struct {
	kind, q     string
	text        string // the line
	explanation string
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
			if !ok || !strings.Contains(" search range instant tags values ", " "+kind+" ") {
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
