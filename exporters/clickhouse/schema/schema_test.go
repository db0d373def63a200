package schema

import (
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/internal/golden"
)

const day = 24 * time.Hour

// statements returns the statements of a schema as one text.
func statements(t *testing.T, o Options) string {
	t.Helper()
	o.Database, o.Spans, o.Statistics = "tracing", 14*day, 60*day
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, st := range s.Statements() {
		b.WriteString(st.SQL + ";\n\n")
	}
	return b.String()
}

func TestStatements(t *testing.T) {
	for name, o := range map[string]Options{
		"single":              {},
		"replicated":          {Shape: Replicated, Cluster: "main"},
		"sharded":             {Shape: Sharded, Cluster: "main", Fsync: true},
		"replicated_database": {Shape: Sharded, Cluster: "main", ReplicatedDatabase: true},
	} {
		golden.Check(t, "testdata/"+name+".sql", statements(t, o))
	}
}
