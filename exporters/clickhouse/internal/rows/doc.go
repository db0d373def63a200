// Package rows converts spans to rows of the tables "spans" and "payload", and rows of "payload"
// back to spans.
//
// Files: encode.go reads a batch and fills blocks; table.go lists the columns; call.go and
// origin.go join values; column.go encodes values in ClickHouse's Native format; attributes.go
// lists attributes by type; body.go, shape.go and form.go cut what is left of a span when its
// columns are removed into parts that compress well; decode.go restores spans.
package rows

// Prefixes of attribute keys in the table "spans", for the place of the attribute.
const (
	PrefixSpan     = "span."
	PrefixResource = "resource."
	PrefixScope    = "scope."
	PrefixEvent    = "event."
	PrefixLink     = "link."
)

// Names of the tables that spans are inserted into.
const (
	SpansTable   = "spans"
	PayloadTable = "payload"
)
