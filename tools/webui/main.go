// Command webui builds the web UI: it bundles the sources in the folder ui with esbuild, compresses
// every file, checks the sizes, and replaces the files that the program embeds. It needs nothing
// but Go, and gives the same bytes on every machine.
//
// usage, in the folder tools: go run ./webui
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run("../ui", "../internal/webui/dist"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run builds the sources in the folder ui, and replaces the files in the folder out.
func run(ui, out string) error {
	ui, err := filepath.Abs(ui)
	if err != nil {
		return err
	}
	s, err := build(ui)
	if err != nil {
		return err
	}
	files, err := compress(s.files)
	if err != nil {
		return err
	}
	if err := check(files, s.pages); err != nil {
		return err
	}
	return replace(out, files)
}
