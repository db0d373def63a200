// Package kafka is shared by the Kafka exporter, the Kafka receiver and the Kafka commands.
//
// Files: config.go and sasl_config.go define the keys of a connection; connection.go builds the
// options of the client; sasl.go and oauth.go authenticate; log.go forwards its log; errors.go
// classifies its errors. encodings.go defines the encodings and headers of records, partition.go
// their keys; encode.go, encode_*.go, record_writers.go and buffers.go build the records of a
// batch; decode.go and decode_native.go build batches from records.
package kafka
