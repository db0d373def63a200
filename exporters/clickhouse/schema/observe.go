package schema

import (
	"context"
	"fmt"
	"strings"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
)

// observed is what servers have of a schema.
type observed struct {
	hosts    uint64 // servers that answered
	database uint64 // servers that have the database
	objects  map[string]*object
	version  int // of the tables; 0 if unknown
	oldest   int // oldest version whose programs can use the tables
}

// object is a table or a view.
type object struct {
	engine      string
	definitions []string // distinct definitions on the servers
	hosts       uint64   // servers that have it
}

// everywhere reports whether a condition holds for the definitions of all servers.
func (o *object) everywhere(condition func(definition string) bool) bool {
	for _, d := range o.definitions {
		if !condition(d) {
			return false
		}
	}
	return true
}

// has reports whether all definitions contain a text.
func (o *object) has(text string) bool {
	return o.everywhere(func(d string) bool { return strings.Contains(d, text) })
}

// observe reads what the servers have, from all reachable servers of a cluster.
func (s *Schema) observe(ctx context.Context, on Server) (*observed, error) {
	f := &observed{objects: map[string]*object{}}
	err := read(ctx, on, s.clusterWide("system.one", "count()", ""), &f.hosts)
	if err != nil {
		return nil, fmt.Errorf("counting servers: %w", err)
	}
	named := " WHERE name = " + where.Text(s.opts.Database)
	if err := read(ctx, on, s.clusterWide("system.databases", "count()", named), &f.database); err != nil {
		return nil, fmt.Errorf("reading databases: %w", err)
	}
	if err := s.observeObjects(ctx, on, f); err != nil {
		return nil, fmt.Errorf("reading tables: %w", err)
	}
	if f.objects["meta"] == nil {
		return f, nil
	}
	var version, oldest uint32
	err = read(ctx, on, "SELECT max(version), max(oldest) FROM "+s.name("meta")+" SETTINGS skip_unavailable_shards = 0", &version, &oldest)
	if err != nil {
		return nil, fmt.Errorf("reading the version of the tables: %w", err)
	}
	f.version, f.oldest = int(version), int(oldest)
	return f, nil
}

func (s *Schema) observeObjects(ctx context.Context, on Server, f *observed) error {
	sql := s.clusterWide("system.tables", "name, any(engine), groupUniqArray(create_table_query), count()",
		" WHERE database = "+where.Text(s.opts.Database)+" GROUP BY name")
	rows, err := on.Select(ctx, sql)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		var name string
		o := &object{}
		if err := rows.Scan(&name, &o.engine, &o.definitions, &o.hosts); err != nil {
			return err
		}
		f.objects[name] = o
	}
	return rows.Err()
}

// clusterWide returns a query of a system table on all reachable servers. rest holds the clauses
// after FROM.
func (s *Schema) clusterWide(table, columns, rest string) string {
	if s.opts.Shape == Single {
		return fmt.Sprintf("SELECT %s FROM %s%s", columns, table, rest)
	}
	return fmt.Sprintf("SELECT %s FROM clusterAllReplicas(%s, %s)%s SETTINGS skip_unavailable_shards = 1", columns,
		where.Text(s.opts.Cluster), table, rest)
}

// read runs a query of one row.
func read(ctx context.Context, on Server, sql string, to ...any) error {
	rows, err := on.Select(ctx, sql)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
	}
	return rows.Err()
}
