package legacy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/clickhouse/schema"
	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/legacy"
)

func TestStatements(t *testing.T) {
	s, err := schema.New(schema.Options{Database: "tracing", Shape: schema.Sharded, Cluster: "main", Fsync: true,
		Spans: 14 * 24 * time.Hour, Statistics: 60 * 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, st := range s.Statements() {
		b.WriteString(legacy.Dialect().Statement(st.SQL) + ";\n\n")
	}
	golden.Check(t, "testdata/statements.sql", b.String())
}
