package config

import (
	"cmp"
	"errors"
	"reflect"

	"github.com/tracing-backend/tracing/pipeline"
)

var observerType = reflect.TypeFor[pipeline.Observer]()

// IsObserver reports whether the component is a [pipeline.Observer].
func (c *Component) IsObserver() bool { return c.Factory.ComponentType().Implements(observerType) }

// AdminEndpoint returns the address at which a process with this configuration answers health
// checks: the first listener of the first observer, as host:port, or https://host:port if the
// listener has a block `tls`.
func (c *Config) AdminEndpoint() (string, error) {
	used := c.Used()
	for _, m := range c.Sorted() {
		if !used[m] || !m.IsObserver() {
			continue
		}
		address, scheme := "", ""
		walkFields(reflect.ValueOf(m.Value).Elem(), nil, "", func(_ []string, v reflect.Value, tag reflect.StructTag) {
			switch field := v.Addr().Interface().(type) {
			case *pipeline.Endpoint:
				address = cmp.Or(address, string(*field))
			case optional:
				if _, on := field.Block(); on && tag.Get("yaml") == "tls" {
					scheme = "https://"
				}
			}
		})
		if address != "" {
			return scheme + address, nil
		}
	}
	return "", errors.New("configuration has no extension that answers health checks; give --endpoint host:port")
}
