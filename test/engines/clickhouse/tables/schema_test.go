package tables

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tracing-backend/tracing/exporters/clickhouse/schema"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
	"github.com/tracing-backend/tracing/test/harness"
)

const day = 24 * time.Hour

// client runs statements on a server.
type client struct{ driver.Conn }

func (c client) Exec(ctx context.Context, sql string) error { return c.Conn.Exec(ctx, sql) }

func (c client) Select(ctx context.Context, sql string) (driver.Rows, error) {
	return c.Query(ctx, sql)
}

// fixture is an empty database.
type fixture struct {
	*testing.T
	server   *engine.Server
	client   client
	database string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	s := engine.Shared(t)
	conn, err := clickhouse.Open(&clickhouse.Options{Addr: []string{s.HTTPAddr()}, Protocol: clickhouse.HTTP})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() }) //nolint:errcheck // the end of the test
	return &fixture{T: t, server: s, client: client{conn}, database: s.Database(t)}
}

// options returns options of the database of the test.
func (f *fixture) options() schema.Options {
	return schema.Options{Database: f.database, Spans: 14 * day, Statistics: 60 * day}
}

// schema returns a schema of the database of the test.
func (f *fixture) schema(d schema.Definition, o schema.Options) *schema.Schema {
	f.Helper()
	s, err := d.For(o)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// apply applies a schema and returns the objects that it changed.
func (f *fixture) apply(s *schema.Schema) []string {
	f.Helper()
	changed, err := s.Apply(context.Background(), f.client)
	if err != nil {
		f.Fatal(err)
	}
	var names []string
	for _, st := range changed {
		names = append(names, st.Object)
	}
	if todo, err := s.Missing(context.Background(), f.client); err != nil || len(todo) > 0 {
		f.Fatalf("after Apply, missing: %v, %v", todo, err)
	}
	return names
}

// query returns the output of a query, in which {db} stands for the database.
func (f *fixture) query(sql string) string {
	f.Helper()
	return strings.TrimSpace(f.server.Exec(f.T, strings.ReplaceAll(sql, "{db}", f.database)))
}

// definition returns the definition of a table on the server.
func (f *fixture) definition(table string) string {
	f.Helper()
	return f.query("SELECT create_table_query FROM system.tables WHERE database = '{db}' AND name = '" + table + "'")
}

func TestCreate(t *testing.T) {
	f := newFixture(t)
	s := f.schema(schema.Current(), f.options())
	if created := f.apply(s); len(created) < len(schema.Current().Tables) {
		t.Errorf("created %v", created)
	}
	if again := f.apply(s); len(again) > 0 {
		t.Errorf("Apply changed existing tables: %v", again)
	}
	for _, table := range schema.Current().Tables {
		definition := f.definition(table.Name)
		if !strings.Contains(definition, "non_replicated_deduplication_window = 10000") {
			t.Errorf("table %s does not recognize repeated inserts: %s", table.Name, definition)
		}
		if table.Expires != schema.Never && !strings.Contains(definition, "TTL day + toIntervalDay(") {
			t.Errorf("table %s does not expire: %s", table.Name, definition)
		}
	}
}

// What is dropped by hand comes back.
func TestRepair(t *testing.T) {
	f := newFixture(t)
	s := f.schema(schema.Current(), f.options())
	f.apply(s)
	f.query("ALTER TABLE {db}.payload DROP COLUMN call")
	f.query("ALTER TABLE {db}.spans DROP INDEX by_name")
	f.query("DROP TABLE {db}.bounds_view SYNC")
	f.query("ALTER TABLE {db}.hours MODIFY SETTING non_replicated_deduplication_window = 0")
	want := []string{"spans", "payload", "hours", "bounds_view"}
	if got := f.apply(s); !slices.Equal(got, want) {
		t.Errorf("changed %v, want %v", got, want)
	}
}

func TestConcurrentCreation(t *testing.T) {
	f := newFixture(t)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			s, err := schema.New(f.options())
			if err == nil {
				_, err = s.Apply(context.Background(), f.client)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if todo, err := f.schema(schema.Current(), f.options()).Missing(context.Background(), f.client); err != nil || len(todo) > 0 {
		t.Errorf("missing: %v, %v", todo, err)
	}
}

func TestChangedRetention(t *testing.T) {
	f := newFixture(t)
	f.apply(f.schema(schema.Current(), f.options()))
	f.query("INSERT INTO {db}.spans (tenant, day) VALUES ('', today())")
	expires := func(table string) string {
		return f.query("SELECT toDate(delete_ttl_info_max) - today() FROM system.parts WHERE active AND database = '{db}' AND table = '" +
			table + "'")
	}
	if got := expires("spans"); got != "15" {
		t.Errorf("rows expire after %s days, want 14 and the rest of the day", got)
	}
	o := f.options()
	o.Spans = 30*day + time.Hour
	f.apply(f.schema(schema.Current(), o))
	harness.Poll(t, "rewriting the rows", func() bool {
		return f.query("SELECT count() FROM system.mutations WHERE database = '{db}' AND NOT is_done") == "0"
	})
	if got := expires("spans"); got != "32" {
		t.Errorf("stored rows expire after %s days, want 31 and the rest of the day", got)
	}
	if got := expires("minutes"); got != "61" {
		t.Errorf("statistics expire after %s days, want 60 and the rest of the day", got)
	}
	o.Spans = 0
	f.apply(f.schema(schema.Current(), o))
	if d := f.definition("payload"); strings.Contains(d, "TTL") {
		t.Errorf("table expires without a limit: %s", d)
	}
}

func TestChangedSync(t *testing.T) {
	f := newFixture(t)
	o := f.options()
	o.Fsync = true
	f.apply(f.schema(schema.Current(), o))
	if d := f.definition("spans"); !strings.Contains(d, "fsync_after_insert = 1") {
		t.Errorf("inserts are not synced: %s", d)
	}
	o.Fsync = false
	f.apply(f.schema(schema.Current(), o))
	if d := f.definition("spans"); strings.Contains(d, "fsync_after_insert = 1") {
		t.Errorf("inserts are still synced: %s", d)
	}
}

// newer returns the next version of the tables: with a column, a view that fills it, an index and
// a table more.
func newer() schema.Definition {
	d := schema.Current()
	d.Version++
	for i := range d.Tables {
		t := &d.Tables[i]
		switch t.Name {
		case "spans":
			t.Columns = append(t.Columns, schema.Column{Name: "color", Type: "LowCardinality(String)", Value: "DEFAULT 'none'"})
			t.Indexes = append(t.Indexes, schema.Index{Name: "by_color", Expr: "color", Type: "set(10)", Granularity: 1})
		case "hours":
			t.Columns = append(t.Columns, schema.Column{Name: "colored", Type: "SimpleAggregateFunction(sum, UInt64)"})
			t.Select = strings.Replace(t.Select, "count() AS spans", "count() AS spans, countIf(s.color != 'none') AS colored", 1)
			t.SelectVersion = d.Version
		}
	}
	more := d.Tables[len(d.Tables)-1]
	more.Name = "more"
	d.Tables = append(d.Tables, more)
	return d
}

const insertOld = "INSERT INTO {db}.spans (tenant, service, start, day) VALUES ('', 'cart', 1790000000000000000, today())"

// Programs of the old version work on during and after an upgrade.
func TestUpgrade(t *testing.T) {
	f := newFixture(t)
	before, after := f.schema(schema.Current(), f.options()), f.schema(newer(), f.options())
	f.apply(before)
	f.query(insertOld)
	if got, want := f.apply(after), []string{"spans", "spans", "hours", "more", "hours_view", "meta"}; !slices.Equal(got, want) {
		t.Errorf("changed %v, want %v", got, want)
	}
	f.query(insertOld)
	f.query("INSERT INTO {db}.spans (tenant, service, start, day, color) VALUES ('', 'cart', 1790000000000000000, today(), 'red')")
	if got := f.query("SELECT sum(spans), sum(colored) FROM {db}.hours"); got != "3\t1" {
		t.Errorf("the view counted %s, want 3 spans and 1 with a color", got)
	}
	if again := f.apply(before); len(again) > 0 {
		t.Errorf("the old version changed the tables of the new one: %v", again)
	}
	o := f.options()
	o.Statistics = 90 * day
	f.apply(f.schema(schema.Current(), o))
	if d := f.definition("minutes"); !strings.Contains(d, "toIntervalDay(91)") {
		t.Errorf("the old version did not change the retention: %s", d)
	}
}

func TestRefusals(t *testing.T) {
	f := newFixture(t)
	old := f.schema(schema.Current(), f.options())
	d := newer()
	d.Oldest = d.Version
	f.apply(f.schema(d, f.options()))
	_, err := old.Apply(context.Background(), f.client)
	if !errors.Is(err, schema.ErrUnusable) || !strings.Contains(err.Error(), "upgrade this program") {
		t.Errorf("newer tables: %v", err)
	}
	if err := old.Ready(context.Background(), f.client); !errors.Is(err, schema.ErrUnusable) {
		t.Errorf("newer tables: %v", err)
	}
}

// The server parses the statements for all shapes, also those that it cannot run.
func TestSyntax(t *testing.T) {
	f := newFixture(t)
	for _, o := range []schema.Options{
		{}, {Shape: schema.Replicated, Cluster: "main"}, {Shape: schema.Sharded, Cluster: "main", Fsync: true},
		{Shape: schema.Sharded, Cluster: "main", ReplicatedDatabase: true},
	} {
		o.Database, o.Spans, o.Statistics = "tracing", 14*day, 60*day
		for _, st := range f.schema(schema.Current(), o).Statements() {
			if err := f.client.Conn.Exec(context.Background(), "EXPLAIN AST "+st.SQL); err != nil {
				t.Errorf("%s: %v\n%s", st.Object, err, st.SQL)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	f := newFixture(t)
	s := f.schema(schema.Current(), f.options())
	check := func(s *schema.Schema) (problems []string) {
		t.Helper()
		found, err := s.Check(context.Background(), f.client)
		if err != nil {
			t.Error(err)
		}
		for _, one := range found {
			if one.Problem {
				problems = append(problems, one.Text)
			}
		}
		return problems
	}
	if missing := check(s); len(missing) < len(schema.Current().Tables) || !strings.Contains(missing[0], "is missing") {
		t.Errorf("problems of an empty database: %q", missing)
	}
	f.apply(s)
	if problems := check(s); len(problems) > 0 {
		t.Errorf("problems after Apply: %q", problems)
	}
	f.query("ALTER TABLE {db}.minutes MODIFY SETTING non_replicated_deduplication_window = 0")
	if problems := check(s); len(problems) != 1 || !strings.Contains(problems[0], "minutes is missing or differs") {
		t.Errorf("problems of a table without deduplication: %q", problems)
	}
	f.apply(s)
	o := f.options()
	o.Spans = day
	found, err := f.schema(schema.Current(), o).Check(context.Background(), f.client)
	advice := false
	for _, one := range found {
		advice = advice || !one.Problem && strings.Contains(one.Text, "would run: ALTER TABLE `"+f.database+"`.`payload` MODIFY TTL")
		if one.Problem {
			t.Errorf("problem of tables with another retention: %s", one.Text)
		}
	}
	if err != nil || !advice {
		t.Errorf("findings for tables with another retention: %v, %v", found, err)
	}
	o = f.options()
	o.Shape, o.Cluster = schema.Replicated, "absent"
	found, err = f.schema(schema.Current(), o).CheckServer(context.Background(), f.client)
	if err != nil || !strings.Contains(found[len(found)-3].Text, "cluster absent is not in the configuration") {
		t.Errorf("problems of a server without cluster: %v, %v", found, err)
	}
}

// Settings of the user are findings, except for those that the exporter sets with each statement.
func TestCheckSettings(t *testing.T) {
	f := newFixture(t)
	conn, err := clickhouse.Open(&clickhouse.Options{Addr: []string{f.server.HTTPAddr()}, Protocol: clickhouse.HTTP,
		Settings: clickhouse.Settings{"insert_deduplicate": 0, "max_partitions_per_insert_block": 10, "max_memory_usage": 1 << 29}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the end of the test
	found, err := f.schema(schema.Current(), f.options()).CheckServer(context.Background(), client{conn})
	var texts []string
	for _, one := range found {
		texts = append(texts, one.String())
	}
	all := strings.Join(texts, "\n")
	if want := "warning: setting max_memory_usage is 536870912"; err != nil || !strings.Contains(all, want) {
		t.Errorf("findings lack %q: %v\n%s", want, err, all)
	}
	if strings.Contains(all, "insert_deduplicate") || strings.Contains(all, "max_partitions_per_insert_block") {
		t.Errorf("findings of settings that have no effect:\n%s", all)
	}
}
