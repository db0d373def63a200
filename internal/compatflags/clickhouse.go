package compatflags

import (
	"fmt"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline"
)

// ClickHouseExporter returns the flags of exporter clickhouse. They have the names of the keys of
// Jaeger 2 for its ClickHouse storage.
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

// optionalTLSFlags returns the flags for the block tls of a client that connects without TLS if
// there is none.
func optionalTLSFlags(prefix string) []pipeline.Flag {
	flags := []pipeline.Flag{
		{Name: "ca", Key: "ca_file", Doc: "File of trusted certificate authorities in PEM format. Empty trusts those of the system."},
		{Name: "cert", Key: "cert_file", Doc: "Client certificate file in PEM format."},
		{Name: "key", Key: "key_file", Doc: "Private key file in PEM format."},
		{Name: "server-name", Key: "server_name_override",
			Doc: "Name that the server certificate must contain, instead of the host of the address."},
		{Name: "skip-host-verify", Key: "insecure_skip_verify", Switch: true, Doc: "Whether to accept any server certificate."},
	}
	for i := range flags {
		f := &flags[i]
		f.Name, f.Key, f.Block, f.Missing = prefix+f.Name, "tls::"+f.Key, "tls", withoutTLS(prefix)
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
