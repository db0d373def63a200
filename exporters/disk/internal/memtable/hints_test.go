package memtable

import (
	"fmt"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// TestHintsAreSafe checks that no attribute of a block is reported as absent, before and after
// replay.
func TestHintsAreSafe(t *testing.T) {
	for seed := range uint64(5) {
		table := New(tight())
		records := fill(t, table, randomBatches(t, seed, 20))
		checkHints(t, table.Source())
		checkHints(t, replayAll(t, tight(), records).Source())
	}
}

func checkHints(t *testing.T, src source.Source) {
	t.Helper()
	infos, _ := src.Blocks()
	tables, _ := src.Tables()
	r := reader{tables: tables}
	for i := range infos {
		c := content{}
		b, err := src.Open(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		for row := range b.Len() {
			if err := r.add(c, b, row); err != nil {
				t.Fatal(err)
			}
		}
		b.Close()
		for _, spans := range c {
			for encoded := range spans {
				if err := otlpdata.Walk([]byte(encoded), &hintVisitor{t: t, src: src, block: i}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

type hintVisitor struct {
	t     *testing.T
	src   source.Source
	block int
}

func (*hintVisitor) Resource(*otlpdata.Resource) error { return nil }
func (*hintVisitor) Scope(*otlpdata.Scope) error       { return nil }
func (v *hintVisitor) Span(s *otlpdata.Span) error {
	lists := [][]otlpdata.KeyValue{s.Attributes}
	for i := range s.Events {
		lists = append(lists, s.Events[i].Attributes)
	}
	for i := range s.Links {
		lists = append(lists, s.Links[i].Attributes)
	}
	for _, kvs := range lists {
		for _, kv := range kvs {
			var texts []string
			if k := kv.Value.Kind(); k == otlpdata.ValueString || k == otlpdata.ValueArray {
				texts = append(texts, kv.Value.AsString())
			}
			for e := range kv.Value.ElementsInJSON() {
				texts = append(texts, e.AsString())
			}
			for _, text := range texts {
				if !v.src.MayHold(v.block, kv.Key, text) {
					v.t.Fatalf("block %d: MayHold denies %s=%q", v.block, kv.Key, text)
				}
			}
		}
	}
	return nil
}

// TestHintsExclude checks that absent attributes are reported as absent, by the dictionary if it is
// complete, otherwise by the filter of a full block.
func TestHintsExclude(t *testing.T) {
	const blockRows = 500
	table := New(Options{BlockRows: blockRows})
	withLinks := func(_, _ int, _ *otlpdata.Resource, s *otlpdata.Span) {
		s.Links = []otlpdata.Link{{Attributes: []otlpdata.KeyValue{text("link.key", "link value")}}}
	}
	fill(t, table, hostile(t, 4, blockRows*3/8, withLinks))
	src := table.Source()
	for _, c := range []struct {
		block     int
		key, text string
	}{{0, "cloud.region", "eu-central-1"}, {0, "link.key", "link value"}, {1, "request.id", "x"}} {
		if !src.MayHold(c.block, c.key, c.text) {
			t.Errorf("block %d: MayHold(%s=%s) is wrong", c.block, c.key, c.text)
		}
	}
	for _, key := range []string{"cloud.region", "no such key", "link.key", "request.id"} {
		wrong := 0
		for i := range 1000 { // false positives differ between processes
			if src.MayHold(0, key, fmt.Sprint("absent ", i)) {
				wrong++
			}
		}
		if wrong > 50 {
			t.Errorf("%s: %d of 1000 absent texts pass the filter", key, wrong)
		}
	}
	if _, known := src.Constant(0, 0); known {
		t.Error("Constant returned a constant")
	}
}
