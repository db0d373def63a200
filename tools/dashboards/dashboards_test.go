package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The files in deploy/monitoring/dashboards are those that the command writes.
func TestDashboardsAreCurrent(t *testing.T) {
	dir := filepath.Join("..", folder)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	boards := all()
	if len(files) != len(boards) {
		t.Errorf("%d files, want %d", len(files), len(boards))
	}
	for name, b := range boards {
		want, err := b.encode(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, name+".json")); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s.json is not current; run `go run ./dashboards` in the folder tools (%v)", name, err)
		}
	}
}
