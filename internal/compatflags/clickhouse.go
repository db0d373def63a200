package compatflags

import (
	"fmt"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline"
)

// ClickHouseExporter returns the flags of the `clickhouse` exporter. They are named like the keys
// of Jaeger 2's ClickHouse storage.
func ClickHouseExporter() []pipeline.Flag {
	return append(optionalTLSFlags("clickhouse.tls."),
		pipeline.Flag{Name: "clickhouse.addresses", Key: "endpoints", Value: list,
			Doc: "Addresses of ClickHouse servers, host:port, separated by commas."},
		pipeline.Flag{Name: "clickhouse.protocol", Key: "protocol", Doc: "Protocol of the servers: native or http."},
		pipeline.Flag{Name: "clickhouse.database", Key: "database", Doc: "Name of the database that holds the tables."},
		pipeline.Flag{Name: "clickhouse.username", Key: "username", Doc: "Name of the user."},
		pipeline.Flag{Name: "clickhouse.password", Key: "password", Doc: "Password of the user."},
		pipeline.Flag{Name: "clickhouse.password-file", Key: "password_file", Doc: "File that contains the password of the user."},
		pipeline.Flag{Name: "clickhouse.dial-timeout", Key: "connect_timeout", Doc: "Maximum time for one connection attempt."},
		pipeline.Flag{Name: "clickhouse.cluster", Key: "cluster::name", Doc: "Name of the cluster that holds the tables."},
		pipeline.Flag{Name: "clickhouse.create-schema", Key: "schema", Switch: true, Value: schemaAction,
			Doc: "Whether to create missing tables and upgrade old ones; otherwise they are only checked."},
		pipeline.Flag{Name: "clickhouse.ttl", Key: "retention::spans", Doc: "Time for which spans are stored. 0 disables the limit."},
	)
}

// optionalTLSFlags returns the flags for the block `tls` of a client. Without the block, the client
// connects without TLS.
func optionalTLSFlags(prefix string) []pipeline.Flag {
	flags := tlsKeys(prefix, "tls", "address")
	for i := range flags {
		flags[i].Block = "tls"
	}
	return append(flags, pipeline.Flag{Name: prefix + "enabled", Key: "tls", Presence: true, Doc: "Whether to use TLS."})
}

// schemaAction returns what to do with tables.
func schemaAction(text string) (any, error) {
	create, err := strconv.ParseBool(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not true or false", text)
	}
	if create {
		return "create", nil
	}
	return "check", nil
}
