package traceql

import (
	"encoding/json"
	"os"
	"testing"
)

// TestUISearches parses the searches with which the parser of the web UI is tested. Both must
// accept the same ones, and what the UI writes must have the intended meaning.
func TestUISearches(t *testing.T) {
	data, err := os.ReadFile("../../ui/src/query/testdata/searches.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Searches []struct {
			Text  string
			Valid bool
		}
		Adds []struct{ Result, Same string }
	}
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Searches) == 0 || len(table.Adds) == 0 {
		t.Fatal("no searches")
	}
	for _, c := range table.Searches {
		if _, err := Parse(c.Text); (err == nil) != c.Valid {
			t.Errorf("%s: valid %t, error %v", c.Text, c.Valid, err)
		}
	}
	for _, c := range table.Adds {
		got, err := Parse(c.Result)
		if err != nil {
			t.Errorf("%s: %v", c.Result, err)
			continue
		}
		want, err := Parse(c.Same)
		if err != nil {
			t.Fatalf("%s: %v", c.Same, err)
		}
		if Format(got.Set) != Format(want.Set) {
			t.Errorf("%s means %s, want %s", c.Result, Format(got.Set), Format(want.Set))
		}
	}
}
