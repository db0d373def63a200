// Package examples contains the configurations that are built into the program as presets. The
// documentation shows them as examples, and tests run each of them.
package examples

import _ "embed"

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
