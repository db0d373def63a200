package schema

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
)

// ErrUnusable is wrapped by errors about existing tables that this program must not use, such as
// tables of a newer version.
var ErrUnusable = errors.New("tables are not usable")

// plan returns, in order, the statements that bring the servers' tables to the schema. A statement
// has no effect if another program has already run it.
func (s *Schema) plan(f *observed) ([]Statement, error) {
	if err := s.usable(f); err != nil {
		return nil, err
	}
	if f.version > s.Version {
		return s.expire(f), nil // everything else belongs to the newer version
	}
	p := &planner{Schema: s, found: f}
	if f.database < f.hosts {
		p.add(s.opts.Database, s.createDatabase())
	}
	for i := range s.Tables {
		p.table(&s.Tables[i])
	}
	for i := range s.Tables {
		p.view(&s.Tables[i])
	}
	if f.version < s.Version {
		p.add("meta", fmt.Sprintf("INSERT INTO %s (version, oldest) SETTINGS async_insert = 0 VALUES (%d, %d)", s.name("meta"),
			s.Version, s.Oldest))
	}
	return p.list, nil
}

// usable returns an error that matches ErrUnusable if the programs must not use the tables.
func (s *Schema) usable(f *observed) error {
	if f.oldest > s.Version {
		return fmt.Errorf("%w: database %s has version %d, which needs programs of version %d or later, and this program has version %d; "+
			"upgrade this program", ErrUnusable, s.opts.Database, f.version, f.oldest, s.Version)
	}
	is, ok := s.shape(f)
	if ok && is != s.opts.Shape {
		return fmt.Errorf("%w: database %s has the shape %s, and %s is configured; use the keys of cluster with which the tables were created, "+
			"or another database", ErrUnusable, s.opts.Database, is, s.opts.Shape)
	}
	if f.objects[s.Local("attribute_keys")] != nil { // its data is not in the table "attributes"
		return fmt.Errorf("%w: database %s has the table attribute_keys of a program before the first release; use another database",
			ErrUnusable, s.opts.Database)
	}
	o := f.objects["spans"]
	of := "Distributed(" + where.Text(s.opts.Cluster) + ","
	if ok && is == Sharded && o != nil && !o.has(of) {
		return fmt.Errorf("%w: database %s belongs to another cluster than %s", ErrUnusable, s.opts.Database, s.opts.Cluster)
	}
	return nil
}

// shape returns the shape of existing tables.
func (s *Schema) shape(f *observed) (Shape, bool) {
	o := f.objects["spans"]
	switch {
	case f.objects["spans"+localSuffix] != nil:
		return Sharded, true
	case o == nil:
		return "", false
	case o.engine == "Distributed":
		return Sharded, true
	case strings.HasPrefix(o.engine, "Shared"): // in a service that replicates by itself
		return s.opts.Shape, s.opts.Shape != Sharded
	case strings.HasPrefix(o.engine, "Replicated"):
		return Replicated, true
	}
	return Single, true
}

// expire returns the statements that change the retention of existing tables.
func (s *Schema) expire(f *observed) []Statement {
	p := &planner{Schema: s, found: f}
	for i := range s.Tables {
		if o := f.objects[s.Local(s.Tables[i].Name)]; o != nil {
			p.ttl(&s.Tables[i], o)
		}
	}
	return p.list
}

// planner collects statements.
type planner struct {
	*Schema
	found *observed
	list  []Statement
}

func (p *planner) add(object, sql string) {
	p.list = append(p.list, Statement{Object: object, SQL: sql})
}

// object returns an object that all servers have, or nil.
func (p *planner) object(name string) *object {
	if o := p.found.objects[name]; o != nil && o.hosts >= p.found.hosts {
		return o
	}
	return nil
}

// table creates a table, or adds its missing parts.
func (p *planner) table(t *Table) {
	local := p.Local(t.Name)
	if o := p.object(local); o == nil {
		p.add(local, p.createTable(t))
	} else {
		p.columnsOf(local, t, o, true)
		p.indexes(t, o)
		p.ttl(t, o)
		p.changeSettings(t, o)
	}
	if p.opts.Shape != Sharded {
		return
	}
	if o := p.object(t.Name); o == nil {
		p.add(t.Name, p.createDistributed(t))
	} else {
		p.columnsOf(t.Name, t, o, false)
	}
}

func (p *planner) alter(name, change string) {
	p.add(name, "ALTER TABLE "+p.name(name)+p.onCluster()+" "+change)
}

// tune changes the retention or the settings of a table.
func (p *planner) tune(t *Table, change string) {
	p.alter(p.Local(t.Name), change)
	p.list[len(p.list)-1].tunes = true
}

// columnsOf adds the columns that a table lacks.
func (p *planner) columnsOf(name string, t *Table, o *object, stored bool) {
	for _, c := range t.Columns {
		if !o.has(db.Quote(c.Name) + " ") {
			p.alter(name, "ADD COLUMN IF NOT EXISTS "+c.clause(stored))
		}
	}
}

// indexes adds the indexes that a table lacks. They serve rows that are inserted or merged later.
func (p *planner) indexes(t *Table, o *object) {
	for i := range t.Indexes {
		if !o.has("INDEX " + t.Indexes[i].Name + " ") {
			p.alter(p.Local(t.Name), "ADD "+strings.Replace(t.Indexes[i].clause(), "INDEX ", "INDEX IF NOT EXISTS ", 1))
		}
	}
}

// ttl changes the retention of a table.
func (p *planner) ttl(t *Table, o *object) {
	want := p.Schema.ttl(t)
	if o.everywhere(func(d string) bool { return ttlOf(d) == want }) {
		return
	}
	if want == "" {
		p.tune(t, "REMOVE TTL")
		return
	}
	p.tune(t, "MODIFY TTL "+want)
}

var ttlPattern = regexp.MustCompile(` TTL (.*?)(?: SETTINGS |$)`)

// ttlOf returns the TTL expression of a definition, or "".
func ttlOf(definition string) string {
	if m := ttlPattern.FindStringSubmatch(definition); m != nil {
		return m[1]
	}
	return ""
}

// changeSettings changes the settings of a table that differ.
func (p *planner) changeSettings(t *Table, o *object) {
	var differ []setting
	dedups := false
	for _, one := range p.changeable() {
		if o.everywhere(one.in) {
			continue
		}
		differ = append(differ, one)
		off := setting{one.name, 0}
		if strings.HasSuffix(one.name, "deduplication_window") && !o.everywhere(func(d string) bool { return !off.in(d) }) {
			dedups = true
		}
	}
	if len(differ) > 0 {
		p.tune(t, "MODIFY SETTING "+joinSettings(differ))
		p.list[len(p.list)-1].dedups = dedups
	}
}

// in reports whether a table with a definition has the setting. A setting that the definition lacks
// is 0.
func (s setting) in(definition string) bool {
	_, after, _ := strings.Cut(definition, " SETTINGS ")
	return strings.Contains(", "+after+",", ", "+s.String()+",") || s.value == 0 && !strings.Contains(", "+after, ", "+s.name+" = ")
}

// view creates the view that fills a table, or changes its query if the query on the servers is
// older.
func (p *planner) view(t *Table) {
	name := t.Name + viewSuffix
	switch {
	case t.Source == "":
	case p.object(name) == nil:
		p.add(name, p.createView(t))
	case p.found.version < t.SelectVersion:
		p.alter(name, "MODIFY QUERY "+p.viewQuery(t))
	}
}
