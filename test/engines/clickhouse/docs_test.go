package clickhouse_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// document returns docs/clickhouse.md.
func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/clickhouse.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDocumentedSQL runs the statements of docs/clickhouse.md.
func TestDocumentedSQL(t *testing.T) {
	s := engine.Shared(t)
	database := s.Database(t)
	openOn(t, s, database, nil)
	blocks := strings.Split(document(t), "```sql\n")[1:]
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

var schemaCommand = regexp.MustCompile(`(?m)^    bin/tracing (clickhouse schema .*?) *(?:#.*)?$`)

// TestDocumentedCommands runs the commands of docs/clickhouse.md for the tables, with a file and a
// variable. The last one finds no problem.
func TestDocumentedCommands(t *testing.T) {
	s := engine.Start(t, engine.Options{})
	commands := schemaCommand.FindAllStringSubmatch(document(t), -1)
	if len(commands) != 3 {
		t.Fatalf("%d commands, want 3", len(commands))
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("my.yaml", []byte("exporters: {clickhouse: {database: mine}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CLICKHOUSE_ADDRESSES", s.NativeAddr())
	for _, c := range commands {
		code, stdout, stderr := inprocess.RunCommand(t, strings.Fields(c[1])...)
		if code != 0 || stdout == "" {
			t.Errorf("%s: exit code %d: %s%s", c[1], code, stdout, stderr)
		}
	}
	if got := s.Exec(t, "SELECT count() > 0 FROM system.tables WHERE database = 'mine'"); strings.TrimSpace(got) != "1" {
		t.Errorf("database has no tables: %s", got)
	}
}
