package names

import (
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestListsAreBounded checks that lists respect Options.MaxValues and that damage does not empty
// them.
func TestListsAreBounded(t *testing.T) {
	f := scantest.Series(t, 10, 10)
	s := &store{f, New(scan.NewStore(f.View, scan.Options{MaxValues: 7}))}
	s.Tables[0].Blocks[3].Rot.Store(scantest.RottenBlock)
	for name, list := range map[string]func() ([]string, error){
		"values of many": func() ([]string, error) { return s.AttributeValues(t.Context(), "", "order", "order-", 100) },
		"numbers":        func() ([]string, error) { return s.AttributeValues(t.Context(), "", "size", "", 0) },
	} {
		got, err := list()
		if err != nil || len(got) != 7 || !slices.IsSorted(got) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if got, err := s.AttributeValues(t.Context(), "", "size", "9", 3); err != nil || len(got) != 3 {
		t.Errorf("first three of a prefix: got %q, %v", got, err)
	}
	if ops, more, err := s.Operations(t.Context(), "", "cart", "", tracestore.NameQuery{}); err != nil || len(ops) != 7 || !more {
		t.Errorf("operations are %v, %v", ops, err)
	}
	if keys, err := s.AttributeKeys(t.Context(), "", "", 0); err != nil || !slices.Equal(keys, []string{"order", "service.name", "size"}) {
		t.Errorf("keys are %q, %v", keys, err)
	}
}
