package doctor

import (
	"net"
	"reflect"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/server/udp"
)

// listener is an address on which the program listens.
type listener struct {
	component *app.Component
	path      string // keys of its block below the component: protocols::grpc; "" if it has none of its own
	network   string // tcp or udp
	address   string // as configured
	security  server.SecurityConfig
	buffer    int // socket_buffer of UDP listeners in bytes
	clients   int // max_connections; 0 if it has none
}

// String names the listener in findings.
func (l *listener) String() string {
	return strings.TrimSuffix(key(l.component)+"::"+l.path, "::") + " (" + l.network + " " + l.address + ")"
}

// key returns the path of a component in the configuration: receivers::otlp.
func key(c *app.Component) string { return c.Key.Kind.Section() + "::" + c.Key.ID.String() }

// is reports whether the listener is the one at path of a component of a kind and type.
func (l *listener) is(kind pipeline.Kind, typ, path string) bool {
	return l.component.Key.Kind == kind && l.component.Factory.Type() == typ && l.path == path
}

// hostPort returns an address at which clients on this host reach the listener.
func (l *listener) hostPort() string {
	host, port, err := pipeline.SplitHostPort(l.address)
	if err != nil {
		return l.address
	}
	return net.JoinHostPort(pipeline.LocalHost(host), port)
}

// tls returns whether clients must use TLS, and whether they need a certificate.
func (l *listener) tls() (on, certificate bool) {
	t, on := l.security.TLS.Get()
	return on, on && t.ClientCAFile != ""
}

// url returns the base URL of an HTTP listener.
func (l *listener) url() string {
	if on, _ := l.tls(); on {
		return "https://" + l.hostPort()
	}
	return "http://" + l.hostPort()
}

// listenersOf returns the listeners of a component: its blocks of known types, and every other
// address.
func listenersOf(c *app.Component) (all []listener) {
	known := map[string]bool{}
	c.Walk(func(path []string, field any, tag reflect.StructTag) {
		at := strings.Join(path, "::")
		l := listener{component: c, path: at, network: "tcp"}
		switch f := field.(type) {
		case *server.GRPCConfig:
			l.address, l.security, l.clients = string(f.Endpoint), f.SecurityConfig, f.MaxConnections
		case *server.HTTPConfig:
			l.address, l.security, l.clients = string(f.Endpoint), f.SecurityConfig, f.MaxConnections
		case *udp.Config:
			l.network, l.address, l.buffer = "udp", string(f.Endpoint), int(f.SocketBuffer)
		case *pipeline.Endpoint:
			l.path = strings.TrimSuffix(strings.TrimSuffix(at, "endpoint"), "::")
			l.address = string(*f)
			if network := tag.Get("network"); network != "" {
				l.network = network
			}
		default:
			return
		}
		if l.address != "" && !known[l.path] {
			known[l.path] = true
			all = append(all, l)
		}
	})
	return all
}

// queryListener returns the listener of the query API that the configuration serves, or nil.
func queryListener(all []listener) *listener {
	for i := range all {
		if l := &all[i]; l.is(pipeline.KindExtension, "query", "http") {
			return l
		}
	}
	return nil
}

// queryURL returns the URL of the query API of a listener, which may be nil.
func queryURL(l *listener) string {
	if l == nil {
		return ""
	}
	return strings.TrimRight(l.url()+text(l.component, "base_path"), "/")
}

// text returns the value of a key that is a string, or "".
func text(c *app.Component, key string) (value string) {
	c.Walk(func(path []string, field any, _ reflect.StructTag) {
		if s, ok := field.(*string); ok && strings.Join(path, "::") == key {
			value = *s
		}
	})
	return value
}
