package rows

import "github.com/tracing-backend/tracing/pipeline/tracestore"

// Connection returns the type of connection that the spans of a shape show, as
// tracestore.ConnectionOf does. It does not know attributes that are Extra.
func (t *Tables) Connection(s *Shape) tracestore.Connection {
	c := tracestore.ConnectionOfKind(s.Kind)
	for _, id := range s.Columns {
		if int(id) >= len(t.Columns) {
			continue // the definition was lost
		}
		if col := &t.Columns[id]; col.Place == Attribute {
			c = c.Or(tracestore.ConnectionOfKey(col.Key))
		}
	}
	return c
}
