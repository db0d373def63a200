package db

import (
	"errors"
	"testing"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*Config)
		want string // "" is valid
	}{
		{"defaults", func(*Config) {}, ""},
		{"quorum", func(c *Config) { c.InsertQuorum = "2" }, ""},
		{"automatic quorum", func(c *Config) { c.InsertQuorum = QuorumAuto }, ""},
		{"IPv6", func(c *Config) { c.Endpoints = []string{"[::1]:9000"} }, ""},
		{"no endpoints", func(c *Config) { c.Endpoints = nil }, "endpoints"},
		{"no port", func(c *Config) { c.Endpoints = []string{"ch1"} }, "endpoints"},
		{"URL", func(c *Config) { c.Endpoints = []string{"http://ch1:8123"} }, "endpoints"},
		{"port out of range", func(c *Config) { c.Endpoints = []string{"ch1:70000"} }, "endpoints"},
		{"protocol", func(c *Config) { c.Protocol = "mysql" }, "protocol"},
		{"database", func(c *Config) { c.Database = "" }, "database"},
		{"database with hyphens", func(c *Config) { c.Database = "tracing-of_2-shops" }, ""},
		{"database with a quote", func(c *Config) { c.Database = "tracing`" }, "database"},
		{"database with a comment", func(c *Config) { c.Database = "tracing--x" }, "database"},
		{"database with a space", func(c *Config) { c.Database = "my tracing" }, "database"},
		{"compression", func(c *Config) { c.Compression = "zip" }, "compression"},
		{"quorum of none", func(c *Config) { c.InsertQuorum = "0" }, "insert_quorum"},
		{"connections", func(c *Config) { c.MaxConnections = 0 }, "max_connections"},
		{"inserts", func(c *Config) { c.MaxInserts = 100 }, "max_inserts"},
		{"timeout", func(c *Config) { c.Query.Timeout = 0 }, "query::timeout"},
		{"rows", func(c *Config) { c.Query.MaxRows = -1 }, "query::max_rows"},
		{"two passwords", func(c *Config) { c.Password, c.PasswordFile = "a", "b" }, "password_file"},
		{"token without TLS", func(c *Config) { c.TokenFile = "token" }, "token_file"},
		{"token with TLS", func(c *Config) {
			c.TokenFile, c.TLS = "token", pipeline.Present(client.DefaultTLSConfig())
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := DefaultConfig()
			c.edit(&config)
			err := config.Validate()
			key := ""
			if e := (*pipeline.KeyError)(nil); errors.As(err, &e) {
				key = e.Key
			}
			if key != c.want {
				t.Errorf("error of the key %q, want %q: %v", key, c.want, err)
			}
		})
	}
}

func TestQuote(t *testing.T) {
	for name, want := range map[string]string{"spans": "`spans`", "a`b": "`a\\`b`", `a\b`: "`a\\\\b`"} {
		if got := Quote(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
