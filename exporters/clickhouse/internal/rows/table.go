package rows

import "fmt"

// Table holds the columns of one block for one table.
type Table struct {
	// Name is the name of the table.
	Name string
	// Columns are the names of the columns in the order of an insert.
	Columns []string
	columns []column
}

// Rows returns the number of rows.
func (t *Table) Rows() int { return t.columns[0].rows() }

// AppendColumn appends the values of column i in the Native format of a type of the server, without
// a state prefix. An error means that the column of the server has another type.
func (t *Table) AppendColumn(dst []byte, i int, typ string) ([]byte, error) {
	dst, err := t.columns[i].append(dst, typ)
	if err != nil {
		return dst, fmt.Errorf("table %s, column %s: %w", t.Name, t.Columns[i], err)
	}
	return dst, nil
}

func (t *Table) add(name string, c column) {
	t.Columns = append(t.Columns, name)
	t.columns = append(t.columns, c)
}

func (t *Table) fixed(name, typ string, size int) *fixed {
	c := &fixed{typ: typ, size: size}
	t.add(name, c)
	return c
}

func (t *Table) texts(name string) *texts {
	c := &texts{}
	t.add(name, c)
	return c
}

func (t *Table) words(name string) *words {
	c := newWords()
	t.add(name, c)
	return c
}

func (t *Table) reset() {
	for _, c := range t.columns {
		c.reset()
	}
}

// spansTable are the columns of the table "spans".
type spansTable struct {
	Table
	tenant, service, name, kind, status, scopeName, scopeVersion *words
	errorGroup                                                   *words
	start, day, odd, duration, calls, traceID, root              *fixed
	statusMessage                                                *texts
	eventNames                                                   *array
	eventWords                                                   *words
	attributes                                                   attributes
}

func newSpansTable() *spansTable {
	t := &spansTable{Table: Table{Name: SpansTable}, attributes: newAttributes(), eventWords: newWords()}
	t.tenant, t.service = t.words("tenant"), t.words("service")
	t.start, t.day, t.odd = t.fixed("start", "UInt64", 8), t.fixed("day", "Date", 2), t.fixed("odd", "UInt8", 1)
	t.name, t.kind, t.status = t.words("name"), t.words("kind"), t.words("status")
	t.statusMessage, t.errorGroup = t.texts("status_message"), t.words("error_group")
	t.duration, t.calls = t.fixed("duration", "UInt64", 8), t.fixed("calls", "UInt64", 8)
	t.traceID, t.root = t.fixed("trace_id", "FixedString(16)", 16), t.fixed("root", "UInt8", 1)
	t.scopeName, t.scopeVersion = t.words("scope_name"), t.words("scope_version")
	t.eventNames = &array{&fixed{typ: "UInt64", size: 8}, t.eventWords}
	t.add("event_names", t.eventNames)
	all := t.attributes.all()
	for i, p := range Pairs() {
		keys, values := all[i].columns()
		t.add(p.Keys(), keys)
		t.add(p.Values(), values)
	}
	return t
}

// payloadTable are the columns of the table "payload".
type payloadTable struct {
	Table
	tenant, service, name, call, origin *words
	start, duration, failed, day, odd   *fixed
	traceID, ids                        *fixed
	batch                               *repeated
	shape, values                       *words
	texts                               *array
	rest                                *texts
}

func newPayloadTable() *payloadTable {
	t := &payloadTable{Table: Table{Name: PayloadTable}, batch: &repeated{}}
	t.tenant = t.words("tenant")
	t.traceID, t.start = t.fixed("trace_id", "FixedString(16)", 16), t.fixed("start", "UInt64", 8)
	t.ids, t.duration = t.fixed("ids", "FixedString(16)", 16), t.fixed("duration", "UInt64", 8)
	t.service, t.name = t.words("service"), t.words("name")
	t.failed, t.call = t.fixed("failed", "UInt8", 1), t.words("call")
	t.day, t.odd = t.fixed("day", "Date", 2), t.fixed("odd", "UInt8", 1)
	t.add("batch", t.batch)
	t.origin = t.words("origin")
	t.shape = t.words("shape")
	t.values = newWords()
	t.texts = &array{&fixed{typ: "UInt64", size: 8}, t.values}
	t.add("texts", t.texts)
	t.rest = t.Table.texts("rest")
	return t
}
