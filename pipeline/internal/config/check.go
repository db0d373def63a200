package config

import (
	"cmp"
	"fmt"
	"net"
	"reflect"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// checkListeners reports two listeners with the same address. TCP and UDP ports with the same
// number are different.
func (l *loader) checkListeners() {
	type listener struct {
		host string
		path []string
	}
	ports := map[string][]listener{}
	used := l.config.Used()
	for _, c := range l.components {
		if !used[c] {
			continue
		}
		path := c.path()
		walkFields(reflect.ValueOf(c.Value).Elem(), path, "", func(at []string, v reflect.Value, tag reflect.StructTag) {
			e, ok := v.Interface().(pipeline.Endpoint)
			host, port, err := net.SplitHostPort(string(e))
			if !ok || err != nil || port == "0" {
				return
			}
			port = cmp.Or(tag.Get("network"), "tcp") + port
			for _, other := range ports[port] {
				if hostsOverlap(host, other.host) {
					l.problem(l.valuePos(at), at, "%s is already used by %s; each listener needs its own port", e, yamltree.Display(other.path...))
					return
				}
			}
			ports[port] = append(ports[port], listener{host, at})
		})
	}
}

// warnOpenListeners warns about listeners whose address has no host: they accept connections from
// other machines, which is probably not intended. An explicit 0.0.0.0 is considered intended.
func (l *loader) warnOpenListeners() {
	var found []string
	var pos yamltree.Pos
	used := l.config.Used()
	for _, c := range l.components {
		if !used[c] {
			continue
		}
		path := c.path()
		walkFields(reflect.ValueOf(c.Value).Elem(), path, "", func(at []string, v reflect.Value, _ reflect.StructTag) {
			if e, ok := v.Interface().(pipeline.Endpoint); ok && strings.HasPrefix(string(e), ":") {
				if found = append(found, fmt.Sprintf("%s (%s)", yamltree.Display(at...), e)); len(found) == 1 {
					pos = l.valuePos(at)
				}
			}
		})
	}
	if len(found) > 0 {
		l.warn(pos, nil, "address without a host listens on all interfaces: %s; write a host before the colon: localhost, or 0.0.0.0 for all",
			strings.Join(found, ", "))
	}
}

// hostsOverlap reports whether listeners on two hosts cannot share a port.
func hostsOverlap(a, b string) bool {
	wild := func(h string) bool { return h == "" || h == "0.0.0.0" || h == "::" }
	local := func(h string) bool { return h == "localhost" || h == "127.0.0.1" }
	return a == b || wild(a) || wild(b) || local(a) && local(b)
}

// checkTenants reports components whose clients can reach the data of every tenant without
// credentials although a listener separates tenants.
func (l *loader) checkTenants() {
	separator := l.tenantSeparator()
	if separator == "" {
		return
	}
	used := l.config.Used()
	for _, c := range l.components {
		bypass, ok := c.Value.(pipeline.TenantBypass)
		if !ok || !used[c] {
			continue
		}
		path := c.path()
		switch problem, allowed := bypass.BypassesTenants(); {
		case problem == "":
		case allowed:
			l.warn(c.pos, path, "%s separates tenants, but here %s", separator, problem)
		default:
			l.problem(c.pos, path, "%s separates tenants, but here %s", separator, problem)
		}
	}
}

// tenantSeparator returns the path of a listener that separates tenants, or "".
func (l *loader) tenantSeparator() (found string) {
	used := l.config.Used()
	for _, c := range l.components {
		if !used[c] {
			continue
		}
		path := c.path()
		walkFields(reflect.ValueOf(c.Value).Elem(), path, "", func(at []string, v reflect.Value, _ reflect.StructTag) {
			s, ok := v.Addr().Interface().(pipeline.TenantSeparator)
			if found == "" && ok && s.SeparatesTenants() {
				found = yamltree.Display(at...)
			}
		})
	}
	return found
}

// warnHolders warns about pipelines whose exporters keep acknowledged spans on disk behind a
// processor that acknowledges them earlier.
func (l *loader) warnHolders() {
	for _, p := range l.config.Pipelines {
		h := p.Holder()
		if h == nil {
			continue
		}
		for _, e := range l.config.ExportersBehind(p) {
			if d, ok := e.Value.(pipeline.DurableConfig); ok && d.KeepsOnDisk() {
				path := []string{"service", "pipelines", p.ID.String()}
				l.warn(l.tree.KeyPos(path...), path, "%s acknowledges spans and then holds them in memory: if the process is killed, "+
					"these are lost, although %s keeps spans on disk", h.Key, e.Key)
				break
			}
		}
	}
}
