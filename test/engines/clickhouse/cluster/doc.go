// Package cluster starts a ClickHouse cluster for tests and demonstrations: a ZooKeeper and, for
// every shard and replica, one server, all of them processes on 127.0.0.1.
//
// The servers are version 18.16 from Debian, the only ClickHouse that can be installed from a
// package registry and replicates. [Install] unpacks the packages into a cache folder, without
// installing them. The version is older than every version that the exporter supports, so tests
// create its tables in a dialect of their own.
package cluster
