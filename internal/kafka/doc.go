// Package kafka is what the Kafka exporter, the Kafka receiver and the commands for Kafka share.
//
// Files: config.go and sasl_config.go are the keys of a connection; connection.go makes the options
// of the client; sasl.go and oauth.go authenticate; log.go passes on its log; errors.go classifies
// its errors. encodings.go names the encodings and headers of records, and partition.go their keys;
// encode.go makes the records of a batch with encode_*.go, record_writers.go and buffers.go;
// decode.go and decode_native.go make batches of records.
package kafka
