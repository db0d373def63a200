// Command build writes the documentation as a site of static files to a folder: `make docs`. It
// runs in the root folder of the repository.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/tracing-backend/tracing/internal/docsite"
)

func main() {
	out := flag.String("out", "", "folder to write to")
	flag.Parse()
	if err := build(*out); err != nil {
		fmt.Fprintln(os.Stderr, "cannot build the documentation:", err)
		os.Exit(1)
	}
}

func build(out string) error {
	if out == "" {
		return fmt.Errorf("-out must name a folder")
	}
	site, err := docsite.New(os.DirFS("."), "")
	if err != nil {
		return err
	}
	if err := site.WriteFolder(out); err != nil {
		return err
	}
	fmt.Printf("%d files in %s\n", len(site.Names()), out)
	return nil
}
