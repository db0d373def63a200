// Command generate writes the Go code of the wire formats: of internal/wire/proto by the plugins of protobuf and gRPC, which go.mod pins as
// tools, and of internal/wire/thrift by a generator of its own, whose code is made of calls of package thriftio.
//
// Run it at the module's root: go run ./internal/wire/generate
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// wirePackage is the package below which generated packages lie.
const wirePackage = "github.com/tracing-backend/tracing/internal/wire"

func main() {
	in := flag.String("in", "internal/wire", "folder with the folders proto and thrift")
	out := flag.String("out", "internal/wire", "folder that gets a folder for each package")
	flag.Parse()
	if err := generate(*in, *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(in, out string) error {
	if err := goThrift(filepath.Join(in, "thrift"), out); err != nil {
		return fmt.Errorf("generate from thrift: %w", err)
	}
	if err := goProto(filepath.Join(in, "proto"), out); err != nil {
		return fmt.Errorf("generate from proto: %w", err)
	}
	return nil
}

// writeFile writes the file of a slash-separated path below dir.
func writeFile(dir, name string, content []byte) error {
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}
