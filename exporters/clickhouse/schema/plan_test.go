package schema

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPlanOfOtherOptions checks that tables that were created with another retention and other
// settings have what programs need, and that a plan for them changes nothing else.
func TestPlanOfOtherOptions(t *testing.T) {
	created, err := New(Options{Database: "tracing", Spans: 30 * day, Statistics: 60 * day, Fsync: true})
	if err != nil {
		t.Fatal(err)
	}
	index := regexp.MustCompile("INDEX `(\\w+)`") // servers do not quote the names
	f := &observed{hosts: 1, database: 1, version: created.Version, oldest: created.Oldest, objects: map[string]*object{}}
	for _, st := range created.Statements() {
		definition := index.ReplaceAllString(strings.Join(strings.Fields(st.SQL), " "), "INDEX $1")
		f.objects[st.Object] = &object{engine: "MergeTree", definitions: []string{definition}, hosts: 1}
	}
	if todo, err := created.plan(f); err != nil || len(todo) > 0 {
		t.Errorf("for its own tables: %v, %v", todo, err)
	}
	other, err := New(Options{Database: "tracing", Spans: 14 * day})
	if err != nil {
		t.Fatal(err)
	}
	todo, err := other.plan(f)
	if err != nil || len(todo) == 0 {
		t.Errorf("for tables with another retention: %v, %v", todo, err)
	}
	for _, st := range todo {
		if change := strings.Contains(st.SQL, " TTL") || strings.Contains(st.SQL, " MODIFY SETTING "); !change || !st.tunes {
			t.Errorf("%s: tunes is %t", st.SQL, st.tunes)
		}
	}
	f.objects["attribute_keys"] = f.objects["attributes"]
	if _, err := created.plan(f); !errors.Is(err, ErrUnusable) {
		t.Errorf("with a table of a program before the first release: error %v", err)
	}
	delete(f.objects, "attribute_keys")
	delete(f.objects, "hours")
	todo, err = other.plan(f)
	if i := slices.IndexFunc(todo, func(st Statement) bool { return !st.tunes }); err != nil || i < 0 || todo[i].Object != "hours" {
		t.Errorf("without a table: %v, %v", todo, err)
	}
}
