package kafka

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Keys of records.
const (
	KeyTraceID = "trace_id" // all spans of a trace are in one partition
	KeyService = "service"  // all spans of a service are in one partition
	KeyNone    = "none"     // spans are in any partition
)

// AnyPartition is the partition of a record that may be in any partition.
const AnyPartition int32 = -1

// PartitionOf returns the partition of a key, of n partitions: the one that Kafka's Java client and
// most others choose.
func PartitionOf(key []byte, n int) int32 { return int32(murmur2(key)&0x7fffffff) % int32(n) }

// appendTraceKey appends the key of a trace: its id in lower-case hex digits, as the OpenTelemetry
// Collector writes it. A trace without id has an empty key.
func appendTraceKey(dst []byte, id otlpdata.TraceID) []byte {
	if id.IsZero() {
		return dst
	}
	return hex.AppendEncode(dst, id[:])
}

// murmur2 is the hash of Kafka's Java client (org.apache.kafka.common.utils.Utils.murmur2).
func murmur2(b []byte) uint32 {
	const (
		seed uint32 = 0x9747b28c
		m    uint32 = 0x5bd1e995
		r           = 24
	)
	h := seed ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b) * m
		k = (k ^ k>>r) * m
		h = h*m ^ k
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(b[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
