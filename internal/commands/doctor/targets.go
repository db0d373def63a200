package doctor

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/commands"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/server/udp"
)

// listener is an address on which the program listens.
type listener struct {
	component *app.Component
	path      string // keys of its block below the component: protocols::grpc; "" if it has no block
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
	return net.JoinHostPort(commands.LocalHost(host), port)
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

// listenersOf returns the listeners of a component: blocks of known types, and all other addresses.
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

// connection is a component's connection to another process. Either grpc or http is set.
type connection struct {
	component *app.Component
	path      string // keys of its block below the component
	grpc      *client.GRPCConfig
	http      *client.HTTPConfig
	url       string // for requests of http
}

// String names the connection in findings.
func (c *connection) String() string {
	address := pipeline.MaskURLs(c.url)
	if c.grpc != nil {
		address = c.grpc.Endpoint
	}
	return strings.TrimSuffix(key(c.component)+"::"+c.path, "::") + " (" + address + ")"
}

// connectionsOf returns the connections of a component.
func connectionsOf(config *app.Config, c *app.Component) (all []connection) {
	c.Walk(func(path []string, field any, _ reflect.StructTag) {
		at := strings.Join(path, "::")
		switch f := field.(type) {
		case *client.GRPCConfig:
			if f.Endpoint != "" {
				all = append(all, connection{component: c, path: at, grpc: f})
			}
		case *client.HTTPConfig:
			for _, url := range requestURLs(config, c, f) {
				all = append(all, connection{component: c, path: at, http: f, url: url})
			}
		}
	})
	if more, ok := c.Value.(client.Connector); ok {
		for _, grpc := range more.Connections() {
			all = append(all, connection{component: c, grpc: &grpc})
		}
	}
	return all
}

// requestURLs returns the URLs to which a component sends requests.
func requestURLs(config *app.Config, c *app.Component, http *client.HTTPConfig) (urls []string) {
	if c.Factory.Type() != "otlphttp" {
		if http.Endpoint == "" {
			return nil
		}
		return []string{http.Endpoint}
	}
	spans, logs := config.Signals(c)
	for signal, used := range map[string]bool{"traces": spans || !logs, "logs": logs} {
		if used {
			urls = append(urls, cmp.Or(text(c, signal+"_endpoint"), strings.TrimRight(http.Endpoint, "/")+"/v1/"+signal))
		}
	}
	slices.Sort(urls)
	return urls
}

// dial returns a connection to a gRPC listener of this installation.
func (x *examination) dial(l *listener) (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if on, _ := l.tls(); on {
		creds = credentials.NewTLS(x.tls.Clone())
	}
	return grpc.NewClient("passthrough:///"+l.hostPort(), grpc.WithTransportCredentials(creds))
}

// headerFor returns the headers of requests to a listener, including the header with the tenant.
func (x *examination) headerFor(l *listener) http.Header {
	tenancy, on := l.security.Tenancy.Get()
	if !on || x.tenant == "" {
		return x.header
	}
	header := x.header.Clone()
	header.Set(tenancy.Header, x.tenant)
	return header
}

// outgoing adds the headers for a listener to the context of a gRPC call.
func (x *examination) outgoing(ctx context.Context, l *listener) context.Context {
	for name, values := range x.headerFor(l) {
		for _, v := range values {
			ctx = metadata.AppendToOutgoingContext(ctx, strings.ToLower(name), v)
		}
	}
	return ctx
}

// unauthenticated says why this command cannot authenticate to a listener, or returns "".
func (x *examination) unauthenticated(l *listener) string {
	_, auth := l.security.Auth.Get()
	_, certificate := l.tls()
	tenancy, _ := l.security.Tenancy.Get()
	switch {
	case certificate && len(x.tls.Certificates) == 0:
		return "clients need a certificate; give --cert and --key"
	case auth && x.header.Get("Authorization") == "":
		return "clients must authenticate; give --header 'Authorization: Bearer ...'"
	case l.security.SeparatesTenants() && x.headerFor(l).Get(tenancy.Header) == "":
		return "requests must name a tenant; give --tenant"
	}
	return ""
}
