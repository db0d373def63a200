package config

import (
	"fmt"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

const indexHead = "# Configuration reference\n\n" + written + `
A configuration is a YAML file with the sections ` + "`receivers`, `processors`, `exporters`, `connectors`, `extensions` and `service`" + `.
In the first five, each key is the id of a component: its type, or ` + "`type/name`" + `. Each type has a page, see [components](#components). The
section [service](configuration/service.md) lists the extensions and the pipelines that connect the components. Blocks that many components
have, such as TLS, are described [once](configuration/shared.md).

## Sources of a configuration

Later sources override earlier ones: a preset (` + "`tracing collector`" + `), files (` + "`--config a.yaml --config b.yaml`" + `, of
at most 16MiB each; without a preset, only the files count), environment variables, flags, and single keys
(` + "`--set exporters::disk::retention::time=24h`" + `). Maps merge, lists replace, and ` + "`null`" + ` removes a key.

In a value, ` + "`${NAME}`" + ` or ` + "`${env:NAME}`" + ` is an environment variable, ` + "`${NAME:-default}`" + ` has a default, ` + "`${file:/path}`" + ` is the content of a
file of at most 1MiB or of the pipe ` + "`/dev/stdin`, and `$$`" + ` is a dollar sign. Messages about a wrong value show the reference, not its value.

[Commands](running.md#configuration) check and print a configuration.

## Flags and environment variables

[Flags](configuration/flags.md) set the keys that change most often, also under names that existing command lines use.

## Types

| Type | Written as |
|---|---|
| string, boolean, integer, number | in YAML: ` + "`text`, `true`, `5`, `0.5`" + ` |
| duration | ` + "`250ms`, `5s`, `1h30m` or `7d`" + ` |
| bytes | ` + "`64MiB`, `50GiB`" + `, a number of bytes, or a percentage of the memory that the process may use: ` + "`10%`" + ` |
| list, map | as in YAML; in a key, ` + "`[]`" + ` is an item of a list, and ` + "`<name>`" + ` a name of your choice |
| optional map | a block that its key turns on, even if the block is empty |
| id | the id of a component or pipeline |
| secret | a string that is never printed |

A row without a meaning states a default that differs from the shared block's.

## Components
`

// index returns the overview.
func (r *reference) index() string {
	var w strings.Builder
	w.WriteString(indexHead)
	var kind pipeline.Kind
	for _, f := range r.factories {
		if f.Kind() != kind {
			kind = f.Kind()
			name := kind.Section()
			fmt.Fprintf(&w, "\n### %s\n\n| Type | Purpose |\n|---|---|\n", strings.ToUpper(name[:1])+name[1:])
		}
		file := f.Kind().String() + "-" + f.Type()
		fmt.Fprintf(&w, "| [%s](%s) | %s |\n", f.Type(), pageFile(file), cell(f.Summary()))
	}
	return w.String()
}

const serviceExample = `receivers:
  otlp: {protocols: {grpc: , http: }}
exporters:
  disk:
extensions:
  admin:
service:
  data_dir: /var/lib/tracing
  extensions: [admin]
  limits: {inflight: 512MiB}
  telemetry:
    logs: {level: info, encoding: json}
  pipelines:
    traces: {receivers: [otlp], exporters: [disk]}
`
