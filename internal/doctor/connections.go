package doctor

import (
	"reflect"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// connection is a connection of a component to another process. Either grpc or http is set.
type connection struct {
	component *app.Component
	path      string // keys of its block below the component
	grpc      *client.GRPCConfig
	http      *client.HTTPConfig
	url       string // to which requests of http go
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
func connectionsOf(c *app.Component) (all []connection) {
	c.Walk(func(path []string, field any, _ reflect.StructTag) {
		at := strings.Join(path, "::")
		switch f := field.(type) {
		case *client.GRPCConfig:
			if f.Endpoint != "" {
				all = append(all, connection{component: c, path: at, grpc: f})
			}
		case *client.HTTPConfig:
			if url := requestURL(c, f); url != "" {
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

// requestURL returns the URL to which a component sends requests.
func requestURL(c *app.Component, http *client.HTTPConfig) string {
	if c.Factory.Type() != "otlphttp" {
		return http.Endpoint
	}
	if url := text(c, "traces_endpoint"); url != "" {
		return url
	}
	return strings.TrimRight(http.Endpoint, "/") + "/v1/traces"
}
