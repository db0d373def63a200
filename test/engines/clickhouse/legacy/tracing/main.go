// Command tracing is the program with the clickhouse exporter in the dialect of ClickHouse 18.16.
package main

import (
	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/legacy"
)

func main() {
	app.Main(legacy.Components(tracing.Components()), tracing.Presets()...)
}
