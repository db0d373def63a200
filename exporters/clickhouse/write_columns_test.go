package clickhouse

import (
	"testing"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/schema"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Every column of the tables that has no value of its own is written, with its type.
func TestWrittenColumns(t *testing.T) {
	tables := map[string]map[string]string{}
	for _, table := range schema.Current().Tables {
		tables[table.Name] = map[string]string{}
		for _, c := range table.Columns {
			if c.Value == "" {
				tables[table.Name][c.Name] = c.Type
			}
		}
	}
	chunk := otlpdata.AppendResourceSpans(nil, &otlpdata.Resource{}, &otlpdata.Scope{}, nil)
	b, err := otlpdata.FromOTLP(append(chunk, 0x0a, 0x04, 0x12, 0x02, 0x12, 0x00), otlpdata.Meta{}, otlpdata.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	if err := rows.Encode(b, rows.Options{MaxRows: 10, MaxBytes: 1 << 20}, func(block *rows.Block) error {
		blocks++
		for _, written := range []*rows.Table{block.Payload, block.Spans} {
			want := tables[written.Name]
			if len(written.Columns) != len(want) {
				t.Errorf("table %s: %d columns are written, want %d", written.Name, len(written.Columns), len(want))
			}
			for i, name := range written.Columns {
				if _, err := written.AppendColumn(nil, i, want[name]); err != nil {
					t.Error(err)
				}
			}
		}
		return nil
	}); err != nil || blocks != 1 {
		t.Fatalf("%d blocks, %v", blocks, err)
	}
}
