package foreign

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// clickHouse are the rules for the exporter clickhouse of Collector Contrib. It has another schema.
var clickHouse = slices.Concat(delivery, []rule{
	{"endpoint", clickHouseEndpoint},
	{"ttl", to("retention.spans")},
	{"cluster_name", to("cluster.name")},
	{"create_schema", createSchema},
	{"compress", first(when(set("lz4", "lz4 is used: this compression is not supported"), "gzip", "deflate", "br"), to("compression"))},
	{"connection_params", drop("the exporter has keys for its connections: connect_timeout, max_connections, query.timeout")},
	{"table_engine", drop("tables are replicated if cluster.name is set")},
	{"async_insert", drop("inserts are synchronous, so that acknowledged spans are stored")},
	{"traces_table_name", drop("tables have fixed names; spans in the table of the Collector are not read")},
	{"json", drop("attributes are stored with their types")},
	{"logs_table_name", drop(onlySpans)},
	{"metrics_table_name", drop(onlySpans)},
	{"metrics_tables", drop(onlySpans)},
	{"sending_queue.batch", drop("batches are inserted as they were queued, so that servers recognize repeated inserts; " +
		"the processor batch joins requests before the queue")},
}, below("tls", clientTLS))

// createSchema says what happens to tables at start.
func createSchema(r *rewriter, block, path []string) {
	value := "create"
	if r.Text(path...) == "false" {
		value = "check"
	}
	r.Drop(path, "")
	r.Set(at(block, "schema"), value, "schema was create_schema")
}

// clickHouseEndpoint sets endpoints and protocol, and database and TLS if the address selects them.
func clickHouseEndpoint(r *rewriter, block, path []string) {
	text := r.Text(path...)
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || strings.Contains(text, "${"):
		r.Refuse(path, "write endpoints: [HOST:PORT], and protocol: http unless the port is for the native protocol")
		return
	case u.User != nil:
		r.Refuse(path, "write endpoints: ["+u.Host+"], and the credentials as username and password")
		return
	}
	r.Drop(path, "")
	secure := u.Scheme == "https" || u.Query().Get("secure") == "true"
	r.SetList(at(block, "endpoints"), hosts(u, secure), "endpoints was endpoint")
	if strings.HasPrefix(u.Scheme, "http") {
		r.Set(at(block, "protocol"), "http", "")
	}
	if database := strings.Trim(u.Path, "/"); database != "" && !r.Has(at(block, "database")...) {
		r.Set(at(block, "database"), database, "database was in endpoint")
	}
	if secure && !r.Has(at(block, "tls")...) {
		r.Set(at(block, "tls.min_version"), "1.2", "TLS was selected in endpoint")
	}
}

// hosts returns the addresses of a URL, which may list several, with the default port of its
// protocol.
func hosts(u *url.URL, secure bool) []string {
	port := map[string]string{"http": "8123", "https": "8443"}[u.Scheme]
	switch {
	case port != "":
	case secure:
		port = "9440"
	default:
		port = "9000"
	}
	all := strings.Split(u.Host, ",")
	for i, host := range all {
		if _, _, err := net.SplitHostPort(host); err != nil {
			all[i] = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
	}
	return all
}
