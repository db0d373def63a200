// Command install downloads the Kafka brokers for tests into a cache folder.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/tracing-backend/tracing/test/engines/kafka/broker"
)

func main() {
	if err := broker.Install(context.Background(), os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
}
