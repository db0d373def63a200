package foreign

import (
	"cmp"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// clickHouse has the rules for the `clickhouse` exporter of Collector Contrib, which has a
// different schema.
var clickHouse = slices.Concat(delivery, []rule{
	{"endpoint", clickHouseEndpoint},
	{"ttl", to("retention.spans")},
	{"cluster_name", to("cluster.name")},
	{"create_schema", first(when(quietly, ""), createSchema)},
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
		"the batch processor joins requests before the queue")},
}, below("tls", clientTLS))

// createSchema translates whether tables are created at start.
func createSchema(r *rewriter, block, path []string) {
	create, err := strconv.ParseBool(r.Text(path...))
	if err != nil {
		r.Refuse(path, "is neither true nor false; write schema: create or schema: check")
		return
	}
	value := "check"
	if create {
		value = "create"
	}
	r.Drop(path, "")
	r.Set(at(block, "schema"), value, "schema was create_schema")
}

// addressKeys are the keys for parameters of endpoint that select servers, users and certificates.
var addressKeys = []struct{ parameter, key string }{
	{"hosts", "endpoints"},
	{"alt_hosts", "endpoints"},
	{"username", "username"},
	{"password", "password"},
	{"skip_verify", "tls.insecure_skip_verify"},
	{"tls_server_name", "tls.server_name_override"},
}

// clickHouseEndpoint sets the endpoints, the protocol, and the other settings in the address:
// database, connect_timeout and TLS.
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
	parameters := u.Query()
	for _, name := range []string{"http_proxy", "http_path"} {
		if parameters.Has(name) {
			r.Refuse(path, "write endpoints: ["+u.Host+"] of servers that need no "+name+", which is not supported")
			return
		}
	}
	var names, keys []string
	for _, a := range addressKeys {
		if parameters.Has(a.parameter) {
			names, keys = append(names, a.parameter), append(keys, a.key)
		}
	}
	if len(names) > 0 {
		r.Refuse(path, "write endpoints: ["+u.Host+"], and the parameters "+strings.Join(names, ", ")+" as "+strings.Join(keys, ", "))
		return
	}
	secure, err := isSecure(u)
	if err != nil {
		r.Refuse(path, "the parameter secure is neither true nor false; write endpoints: ["+u.Host+"], and a block tls if the servers use TLS")
		return
	}
	database := cmp.Or(parameters.Get("database"), strings.Trim(u.Path, "/"))
	timeout := parameters.Get("dial_timeout")
	for _, known := range []string{"secure", "database", "dial_timeout"} {
		parameters.Del(known)
	}
	lost := ""
	if len(parameters) > 0 {
		lost = "the exporter has keys for its connections, and does not use the parameters " +
			strings.Join(slices.Sorted(maps.Keys(parameters)), ", ")
	}
	r.Drop(path, lost)
	r.SetList(at(block, "endpoints"), hosts(u, secure), "endpoints was endpoint")
	if strings.HasPrefix(u.Scheme, "http") {
		r.Set(at(block, "protocol"), "http", "")
	}
	if database != "" && !r.Has(at(block, "database")...) {
		r.Set(at(block, "database"), database, "database was in endpoint")
	}
	if timeout != "" && !r.Has(at(block, "connect_timeout")...) {
		r.Set(at(block, "connect_timeout"), timeout, "connect_timeout was dial_timeout in endpoint")
	}
	if secure && !r.Has(at(block, "tls")...) {
		r.Set(at(block, "tls.min_version"), "1.2", "TLS was selected in endpoint")
	}
}

// isSecure reports whether an address selects TLS.
func isSecure(u *url.URL) (bool, error) {
	switch parameter := u.Query().Get("secure"); {
	case u.Scheme == "https":
		return true, nil
	case parameter == "":
		return u.Query().Has("secure"), nil
	default:
		return strconv.ParseBool(parameter)
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
