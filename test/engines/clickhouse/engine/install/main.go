// Command install downloads the engine that package engine needs into a cache folder.
package main

import (
	"fmt"
	"os"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

func main() {
	if _, err := engine.Install(); err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
}
