package clickhouse_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

// TestDocumentedSQL runs the statements of docs/clickhouse.md.
func TestDocumentedSQL(t *testing.T) {
	s := engine.Shared(t)
	database := s.Database(t)
	openOn(t, s, database, nil)
	text, err := os.ReadFile("../../../docs/clickhouse.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```sql\n")[1:]
	if len(blocks) < 5 {
		t.Fatalf("%d statements, want at least 5", len(blocks))
	}
	for _, b := range blocks {
		sql, _, _ := strings.Cut(b, "```")
		sql = strings.NewReplacer("tracing.", database+".", "'tracing'", "'"+database+"'").Replace(sql)
		if _, err := s.Query(sql); err != nil {
			t.Errorf("%s\n%v", sql, err)
		}
	}
}
