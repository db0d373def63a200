package foreign

import (
	"slices"
	"strconv"
	"strings"
)

func itoa(i int) string { return strconv.Itoa(i) }

// otherSignals leaves out pipelines for metrics and profiles, and for logs if a component cannot
// take them, and the components that only they use, if other pipelines are left.
func (r *rewriter) otherSignals() {
	reasons := map[string]string{} // by pipeline to be left out
	for _, p := range r.Keys("service", "pipelines") {
		switch typ := TypeOf(p); {
		case typ == "metrics" || typ == "profiles":
			reasons[p] = typ + " are not supported, only traces and logs"
		case typ == "logs" && !IsOwn(r): // the loader refuses such a pipeline in a file that was written for this program
			if without := r.withoutLogs(p); len(without) > 0 {
				reasons[p] = "logs are not supported with " + strings.Join(without, ", ")
			}
		}
	}
	if len(reasons) == len(r.Keys("service", "pipelines")) {
		return
	}
	var others []string
	for _, p := range r.Keys("service", "pipelines") {
		if reasons[p] != "" {
			others = append(others, p)
		}
	}
	for _, p := range others {
		path := []string{"service", "pipelines", p}
		r.Drop(path, reasons[p], r.usedOnlyBy(path, others)...)
	}
}

// withoutLogs returns the components of a pipeline that cannot be in pipelines of logs.
func (r *rewriter) withoutLogs(pipeline string) (ids []string) {
	for _, list := range []string{receivers, processors, exporters} {
		for _, id := range r.Texts("service", "pipelines", pipeline, list) {
			if typ := TypeOf(id); !r.takesLogs(list, typ) && (list != processors || typ != "memory_limiter") { // see accepted
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// usedOnlyBy returns the components of a pipeline that are listed only by pipelines to be left out.
func (r *rewriter) usedOnlyBy(pipeline, leftOut []string) (paths [][]string) {
	type item struct{ list, id string }
	kept := map[item]bool{}
	for _, p := range r.Keys("service", "pipelines") {
		for _, list := range []string{receivers, processors, exporters} {
			for _, id := range r.Texts("service", "pipelines", p, list) {
				kept[item{list, id}] = kept[item{list, id}] || !slices.Contains(leftOut, p)
			}
		}
	}
	for _, list := range []string{receivers, processors, exporters} {
		for _, id := range r.Texts(at(pipeline, list)...) {
			section, elsewhere := list, kept[item{list, id}]
			if r.Has(connectors, id) {
				section, elsewhere = connectors, kept[item{receivers, id}] || kept[item{exporters, id}]
			}
			if !elsewhere && r.Has(section, id) {
				paths = append(paths, []string{section, id})
			}
		}
	}
	return paths
}

// builtInConnectors are the connectors whose results this program calculates from stored spans.
var builtInConnectors = []string{"spanmetrics", "span_metrics", "servicegraph", "service_graph"}

const builtIn = "/api/metrics and /api/dependencies are calculated from stored spans; " +
	"the extension span_metrics provides metrics to Prometheus"

// connectors leaves out connectors that are built in, and pipelines that only fed them.
func (r *rewriter) connectors() {
	var own []string
	for _, id := range r.Keys(connectors) {
		if slices.Contains(builtInConnectors, TypeOf(id)) {
			r.unlistConnector(id)
			own = append(own, id)
		}
	}
	if len(own) > 0 && len(own) == len(r.Keys(connectors)) {
		r.Drop([]string{connectors}, strings.Join(own, " and ")+": "+builtIn)
		return
	}
	for _, id := range own {
		r.Drop([]string{connectors, id}, builtIn)
	}
}

// unlistConnector removes a connector from all lists, and the pipelines that only fed it.
func (r *rewriter) unlistConnector(id string) {
	refs := References(r, connectors, id)
	for _, list := range lists(r, connectors) {
		r.Replace(list, id)
	}
	for _, ref := range refs {
		if r.Has(ref[:3]...) && len(r.Texts(ref[:4]...)) == 0 {
			r.Drop(ref[:3], "only connected to "+id, r.usedOnlyBy(ref[:3], ref[2:3])...)
		}
	}
}

// jaegerReceivers splits a receiver for all protocols of Jaeger into one for TCP and one for UDP.
func (r *rewriter) jaegerReceivers() {
	for _, id := range r.Keys(receivers) {
		if TypeOf(id) == "jaeger" && !r.known(receivers, "jaeger") {
			r.splitJaeger(id)
		}
	}
}

func (r *rewriter) splitJaeger(id string) {
	from := []string{receivers, id}
	var by []string
	for _, p := range []struct{ key, typ, to string }{
		{"grpc", "native", "protocols.grpc"}, {"thrift_http", "native", "protocols.http"},
		{"thrift_compact", "thriftudp", "compact"}, {"thrift_binary", "thriftudp", "binary"},
	} {
		if !r.Has(at(from, "protocols."+p.key)...) {
			continue
		}
		target := p.typ + strings.TrimPrefix(id, "jaeger")
		if r.Has(receivers, target) && !slices.Contains(by, target) {
			target = p.typ + "/" + strings.ReplaceAll(id, "/", "-")
		}
		r.Move(at(from, "protocols."+p.key), at([]string{receivers, target}, p.to), "")
		if !slices.Contains(by, target) {
			by = append(by, target)
		}
	}
	if len(by) == 0 {
		r.Refuse(from, "must have protocols: grpc, thrift_http, thrift_compact or thrift_binary")
		return
	}
	for _, list := range lists(r, receivers) {
		r.Replace(list, id, by...)
	}
	if r.Has(at(from, "remote_sampling")...) {
		r.Refuse(at(from, "remote_sampling"), strategies)
	}
	r.refuseKeys(at(from, "protocols"))
	r.Drop(at(from, "protocols"), "")
	r.refuseKeys(from)
	r.Replaced(from, "the same here is "+strings.Join(by, " and "))
}

// strategies says what replaces the sampling strategies that the `jaeger` receiver served.
const strategies = "receivers do not serve strategies; delete it, and add the sampling extension: strategy_file is " +
	"file.path there, strategy_file_reload_interval is file.reload_interval, host_endpoint is http.endpoint, and endpoint is remote.endpoint"

// refuseKeys reports all keys of a block.
func (r *rewriter) refuseKeys(path []string) {
	for _, key := range r.Keys(path...) {
		r.Refuse(at(path, key), "there is no such key")
	}
}
