// Package examples contains the configurations that are built into the program as presets, and one
// for each component, which the configuration reference shows. Tests run each preset and check each
// configuration.
package examples

import "embed"

// AllInOne is the preset all-in-one.
//
//go:embed all-in-one.yaml
var AllInOne []byte

// Agent is the preset agent.
//
//go:embed agent.yaml
var Agent []byte

// Collector is the preset collector.
//
//go:embed collector.yaml
var Collector []byte

// Query is the preset query.
//
//go:embed query.yaml
var Query []byte

// CollectorClickHouse is the preset collector-clickhouse.
//
//go:embed collector-clickhouse.yaml
var CollectorClickHouse []byte

// QueryClickHouse is the preset query-clickhouse.
//
//go:embed query-clickhouse.yaml
var QueryClickHouse []byte

// CollectorKafka is the preset collector-kafka.
//
//go:embed collector-kafka.yaml
var CollectorKafka []byte

// Ingester is the preset ingester.
//
//go:embed ingester.yaml
var Ingester []byte

//go:embed components/*.yaml
var components embed.FS

// Component returns a complete configuration that contains the component, given by its kind and
// type, or "" if there is none.
func Component(kind, typ string) string {
	content, err := components.ReadFile("components/" + kind + "-" + typ + ".yaml")
	if err != nil {
		return ""
	}
	return string(content)
}
