package kafka

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
)

func blockingDial(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestClientConfig(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*ClientConfig)
		want   string // "" is valid
	}{
		"default":       {func(*ClientConfig) {}, ""},
		"no brokers":    {func(c *ClientConfig) { c.Brokers = nil }, "must not be empty"},
		"several":       {func(c *ClientConfig) { c.Brokers = []string{"a:1, b:2", "c:3"} }, ""},
		"no second":     {func(c *ClientConfig) { c.Brokers = []string{"a:1,"} }, `"" is not host:port`},
		"no port":       {func(c *ClientConfig) { c.Brokers = []string{"kafka"} }, `"kafka" is not host:port`},
		"port 0":        {func(c *ClientConfig) { c.Brokers = []string{"kafka:0"} }, "is not host:port"},
		"no client id":  {func(c *ClientConfig) { c.ClientID = "" }, "must have from 1 to 256 bytes"},
		"no timeout":    {func(c *ClientConfig) { c.ConnectTimeout = 0 }, "must be above 0"},
		"idle too long": {func(c *ClientConfig) { c.IdleTimeout = pipeline.Duration(time.Hour) }, "must be from 100ms to 15m0s"},
		"rare refresh":  {func(c *ClientConfig) { c.Metadata.RefreshInterval = pipeline.Duration(2 * time.Hour) }, "must be from 1s to 1h0m0s"},
		"unknown sasl":  {withSASL(SASLConfig{Mechanism: "GSSAPI"}), `"GSSAPI" is not one of PLAIN, `},
		"no user":       {withSASL(SASLConfig{Mechanism: plainMechanism, Password: "p"}), "must not be empty with PLAIN"},
		"no password":   {withSASL(SASLConfig{Mechanism: plainMechanism, Username: "u"}), "set password or password_file"},
		"two passwords": {withSASL(SASLConfig{Mechanism: plainMechanism, Username: "u", Password: "p", PasswordFile: "f"}),
			"contradicts password"},
		"plain and token": {withSASL(SASLConfig{Mechanism: plainMechanism, Username: "u", Password: "p", OAuth: OAuthConfig{TokenFile: "f"}}),
			"needs the mechanism OAUTHBEARER"},
		"no token":       {withSASL(SASLConfig{Mechanism: oauthMechanism}), "must have token_file or token_url"},
		"token and user": {withSASL(SASLConfig{Mechanism: oauthMechanism, Username: "u", OAuth: OAuthConfig{TokenFile: "f"}}), "uses a token"},
		"two tokens":     {withOAuth(OAuthConfig{TokenFile: "f", TokenURL: "http://x", ClientID: "i", ClientSecret: "s"}), "contradicts token_file"},
		"no url":         {withOAuth(OAuthConfig{TokenFile: "f", Scopes: []string{"a"}}), "must not be empty with client_id"},
		"bad url":        {withOAuth(OAuthConfig{TokenURL: "x", ClientID: "i", ClientSecret: "s"}), "is not a valid URL"},
		"no secret":      {withOAuth(OAuthConfig{TokenURL: "http://x", ClientID: "i"}), "set client_secret or client_secret_file"},
		"two secrets":    {withOAuth(OAuthConfig{TokenURL: "http://x", ClientID: "i", ClientSecret: "s", ClientSecretFile: "f"}), "contradicts client_secret"},
	} {
		t.Run(name, func(t *testing.T) {
			c := DefaultClientConfig()
			test.change(&c)
			sasl, _ := c.Auth.SASL.Get()
			errs := []error{c.Validate(), c.Metadata.Validate()}
			if _, on := c.Auth.SASL.Get(); on {
				errs = append(errs, sasl.Validate(), sasl.OAuth.Validate())
			}
			err := errors.Join(errs...)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func withSASL(s SASLConfig) func(*ClientConfig) {
	return func(c *ClientConfig) { c.Auth.SASL = pipeline.Present(s) }
}

func withOAuth(o OAuthConfig) func(*ClientConfig) {
	return withSASL(SASLConfig{Mechanism: oauthMechanism, OAuth: o})
}

func TestValidateTopic(t *testing.T) {
	for _, good := range []string{"otlp_spans", "jaeger-spans", "a.b", strings.Repeat("x", 249)} {
		if err := ValidateTopic("topic", good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", ".", "..", "a b", "ä", "a/b", strings.Repeat("x", 250)} {
		if ValidateTopic("topic", bad) == nil {
			t.Errorf("%q is valid", bad)
		}
	}
}

func TestValidateEncoding(t *testing.T) {
	for _, name := range Encodings() {
		if err := ValidateEncoding(name); err != nil {
			t.Error(err)
		}
	}
	if err := ValidateEncoding("protobuf"); err == nil || !strings.Contains(err.Error(), `"protobuf" is not one of otlp_proto, `) {
		t.Error(err)
	}
}
