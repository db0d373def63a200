// Command install downloads and unpacks what package cluster needs into a cache folder.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/cluster"
)

func main() {
	if err := cluster.Install(context.Background(), os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
}
