// Command dashboards writes the Grafana dashboards in deploy/monitoring/dashboards. Run it in the
// folder tools: go run ./dashboards.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

const folder = "../deploy/monitoring/dashboards"

func main() {
	if err := write(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// all returns the dashboards by file name.
func all() map[string]board {
	return map[string]board{"overview": overview(), "receivers": receivers(), "queues": queues(), "store": store(), "query": query(),
		"sampling": sampling()}
}

func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, b := range all() {
		content, err := b.encode(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name+".json"), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// encode returns the dashboard as Grafana reads it.
func (b board) encode(name string) ([]byte, error) {
	content, err := json.MarshalIndent(b.dashboard(name), "", "  ")
	return append(content, '\n'), err
}
