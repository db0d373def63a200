package rows

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ClickHouse/ch-go/proto"
	chcolumn "github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	native "github.com/ClickHouse/clickhouse-go/v2/lib/proto"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
)

const revision = 54460 // of the protocol

// typeOf returns the type that a column has in the tables. Without low cardinality it is the type
// of servers that do not have it.
func typeOf(c column, lowCardinality bool) string {
	switch c := c.(type) {
	case *fixed:
		return c.typ
	case *texts:
		return typeString
	case *array:
		return "Array(" + typeOf(c.values, lowCardinality) + ")"
	}
	if lowCardinality {
		return typeLowCardinality
	}
	return typeString
}

// sent is a batch that holds a block.
type sent struct {
	driver.Batch
	block *native.Block
}

func (s *sent) Columns() []chcolumn.Interface { return s.block.Columns }

// transfer sends a table through the Native format and returns the block as the other side reads
// it.
func transfer(t testing.TB, table *Table, lowCardinality bool) *native.Block {
	t.Helper()
	block := native.NewBlock()
	for i, name := range table.Columns {
		if err := block.AddColumn(name, chcolumn.Type(typeOf(table.columns[i], lowCardinality))); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.FillColumns(table)(&sent{block: block}); err != nil {
		t.Fatal(err)
	}
	var wire proto.Buffer
	if err := block.Encode(&wire, revision); err != nil {
		t.Fatal(err)
	}
	out := native.NewBlock()
	if err := out.Decode(proto.NewReader(bytes.NewReader(wire.Buf)), revision); err != nil {
		t.Fatal(err)
	}
	return out
}

// value returns a value of a block.
func value(t testing.TB, b *native.Block, name string, row int) any {
	t.Helper()
	for i, n := range b.ColumnsNames() {
		if n == name {
			return b.Columns[i].Row(row, false)
		}
	}
	t.Fatalf("no column %s", name)
	return nil
}

// scanner reads a row of a block as a SELECT of PayloadColumns does.
type scanner struct {
	block *native.Block
	row   int
}

func (s scanner) Scan(dest ...any) error {
	for i, name := range strings.Split(PayloadColumns, ", ") {
		for j, n := range s.block.ColumnsNames() {
			if n == name {
				if err := s.block.Columns[j].ScanRow(dest[i], s.row); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
