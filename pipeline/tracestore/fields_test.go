package tracestore

import (
	"encoding/json"
	"testing"
)

// TestPlaces checks that rows of the table are at the index of their place, that names are unique,
// and that a field survives its encoding.
func TestPlaces(t *testing.T) {
	names := make(map[string]bool)
	for i := range Places() {
		row := &Places()[i]
		if row.Place != Place(i) || row.Name == "" || row.Type == "" || row.Doc == "" && row.Words == nil {
			t.Errorf("row %d: %+v", i, row)
		}
		if row.Place.HasKey() != (row.Type == AttributeField) {
			t.Errorf("%s: type %s", row.Name, row.Type)
		}
		for _, name := range row.Names() {
			if names[name] {
				t.Errorf("%s: second field with the name %s", row.Name, name)
			}
			names[name] = true
		}
		f := Field{Place: row.Place, Key: "k"}
		text, err := json.Marshal(f)
		var got Field
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil || got != f {
			t.Errorf("%s: %s: %+v, error %v", row.Name, text, got, err)
		}
	}
	unknown := Place(len(Places()))
	if _, err := unknown.MarshalText(); err == nil || unknown.OfTrace() || unknown.Info().Name != "" {
		t.Errorf("place %d: error %v", unknown, err)
	}
	if err := new(Place).UnmarshalText([]byte("nothing")); err == nil {
		t.Error("unknown name accepted")
	}
}
