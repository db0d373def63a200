package doctor

import "context"

// check is one entry of the table.
type check struct {
	name string
	doc  string // noun phrase for the help text
	run  func(ctx context.Context, x *examination) []Finding
}

// checks returns all checks in the order of the report.
func checks() []check {
	return []check{
		{"configuration", "files and folders that the configuration names, and its warnings", checkConfiguration},
		{"ports", "listeners are free before the start, and answer afterwards", checkPorts},
		{"certificates", "certificate files and their expiry", checkCertificates},
		{"clock", "synchronization of the clock, and its difference from other hosts", checkClock},
		{"fsync", "time to write to the folders of spans durably", checkFsync},
		{"disk", "free disk space for retention and queues", checkDisk},
		{"files", "limit on open files", checkFiles},
		{"memory", "memory that the configuration needs", checkMemory},
		{"udp", "kernel buffers of UDP listeners", checkUDP},
		{"connections", "next hops and stores: DNS, TCP, TLS and their answer", checkConnections},
		{"clickhouse", "tables and settings of ClickHouse", checkClickHouse},
		{"kafka", "brokers, topics, partitions and replicas of Kafka", checkKafka},
		{"versions", "versions of the program, the running process and stored files", checkVersions},
		{"sampling", "answers to clients that ask for sampling strategies", checkSampling},
		{"spans", "a test span through each receiver, read back through the query API", checkSpans},
	}
}
