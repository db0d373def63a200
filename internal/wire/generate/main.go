// Command generate writes the Go code for the .proto files below internal/wire/proto. It runs the
// protobuf and gRPC plugins that go.mod pins as tools.
//
// Run it in the root of the module: go run ./internal/wire/generate
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// wirePackage is the import path of the folder that holds the generated packages.
const wirePackage = "github.com/tracing-backend/tracing/internal/wire"

func main() {
	in := flag.String("in", "internal/wire/proto", "folder of the .proto files")
	out := flag.String("out", "internal/wire", "folder in which each generated package gets a folder")
	flag.Parse()
	if err := generate(*in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// writeFile writes a file below dir. The name is separated by slashes.
func writeFile(dir, name string, content []byte) error {
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}
