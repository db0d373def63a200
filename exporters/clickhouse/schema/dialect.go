package schema

// Dialect describes what servers support. The zero value is a server without any of it; nil in
// Options stands for a current server.
type Dialect struct {
	// Type returns the type of a column; nil keeps the types of the tables.
	Type func(string) string
	// Engine returns an engine without the prefix Replicated and without parameters of replication;
	// nil keeps the engines of the tables.
	Engine func(string) string
	// Select returns the query of a view; nil keeps the queries of the tables.
	Select func(table, query string) string
	// Omit reports tables that the server cannot hold; nil omits none.
	Omit func(table string) bool
	// Blind reports that the server cannot tell what it has. Apply then runs all statements of
	// [Schema.Statements].
	Blind bool
	// Codecs, Indexes, TTL, Aliases and Settings report support for these clauses of tables.
	Codecs, Indexes, TTL, Aliases, Settings bool
}

func (d *Dialect) orDefault() *Dialect {
	if d == nil {
		return &Dialect{Codecs: true, Indexes: true, TTL: true, Aliases: true, Settings: true}
	}
	return d
}

func (d *Dialect) typeOf(c *Column) string {
	if d.Type == nil {
		return c.Type
	}
	return d.Type(c.Type)
}

func (d *Dialect) engine(e string) string {
	if d.Engine == nil {
		return e
	}
	return d.Engine(e)
}

func (d *Dialect) query(t *Table) string {
	if d.Select == nil {
		return t.Select
	}
	return d.Select(t.Name, t.Select)
}

func (d *Dialect) omits(t *Table) bool { return d.Omit != nil && d.Omit(t.Name) }
