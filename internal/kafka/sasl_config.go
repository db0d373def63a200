package kafka

import (
	"errors"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// AuthConfig is the block `auth`.
type AuthConfig struct {
	SASL pipeline.Optional[SASLConfig] `yaml:"sasl" doc:"Authentication with SASL."`
}

// SASLConfig is the block `auth::sasl`.
type SASLConfig struct {
	Mechanism    string          `yaml:"mechanism" doc:"Mechanism that the brokers require: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER."`
	Username     string          `yaml:"username" doc:"Name of the user, for PLAIN and SCRAM."`
	Password     pipeline.Secret `yaml:"password" doc:"Password of the user."`
	PasswordFile string          `yaml:"password_file" path:"file" doc:"File with the password. It is reread when it changes."`
	OAuth        OAuthConfig     `yaml:"oauth" doc:"Source of tokens, for OAUTHBEARER."`
}

// OAuthConfig is the block `auth::sasl::oauth`. The token comes from a file, or from a token
// endpoint that issues it for client credentials.
type OAuthConfig struct {
	TokenFile        string            `yaml:"token_file" path:"file" doc:"File with the token. It is reread when it changes."`
	TokenURL         string            `yaml:"token_url" doc:"URL of a token endpoint that issues tokens for client credentials (RFC 6749, section 4.4)."`
	ClientID         string            `yaml:"client_id" doc:"Client identifier for token_url."`
	ClientSecret     pipeline.Secret   `yaml:"client_secret" doc:"Client secret for token_url."`
	ClientSecretFile string            `yaml:"client_secret_file" path:"file" doc:"File with the client secret. It is reread when it changes."`
	Scopes           []string          `yaml:"scopes" doc:"Scopes that are requested from token_url."`
	TLS              client.TLSConfig  `yaml:"tls" doc:"TLS settings for token_url."`
	Extensions       map[string]string `yaml:"extensions" doc:"SASL extensions that are sent with the token, such as a cluster identifier."`
}

// Values of SASLConfig.Mechanism.
const (
	plainMechanism    = "PLAIN"
	scram256Mechanism = "SCRAM-SHA-256"
	scram512Mechanism = "SCRAM-SHA-512"
	oauthMechanism    = "OAUTHBEARER"
)

var mechanisms = []string{plainMechanism, scram256Mechanism, scram512Mechanism, oauthMechanism}

func defaultAuth() AuthConfig {
	return AuthConfig{SASL: pipeline.Absent(SASLConfig{Mechanism: scram512Mechanism, OAuth: OAuthConfig{TLS: client.DefaultTLSConfig()}})}
}

// Validate reports missing and contradictory credentials. Errors do not contain secrets.
func (c *SASLConfig) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) { errs = append(errs, pipeline.BadKey(key, format, args...)) }
	switch {
	case !slices.Contains(mechanisms, c.Mechanism):
		bad("mechanism", "%q is not one of %s", c.Mechanism, strings.Join(mechanisms, ", "))
	case c.Mechanism == oauthMechanism:
		if c.Username != "" || c.Password != "" || c.PasswordFile != "" {
			bad("username", "must be empty, also password and password_file, because %s uses a token", oauthMechanism)
		}
		if c.OAuth.TokenFile == "" && c.OAuth.TokenURL == "" {
			bad("oauth", "must have token_file or token_url")
		}
	default:
		if c.Username == "" {
			bad("username", "must not be empty with %s", c.Mechanism)
		}
		if c.Password == "" && c.PasswordFile == "" {
			bad("password", "must not be empty with %s; set password or password_file", c.Mechanism)
		}
		if c.OAuth.TokenFile != "" || c.OAuth.TokenURL != "" {
			bad("oauth", "needs the mechanism %s", oauthMechanism)
		}
	}
	if c.Password != "" && c.PasswordFile != "" {
		bad("password_file", "contradicts password; remove one of them")
	}
	return errors.Join(errs...)
}

// Validate reports contradictory sources of tokens. Errors do not contain secrets.
func (c *OAuthConfig) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) { errs = append(errs, pipeline.BadKey(key, format, args...)) }
	if c.ClientSecret != "" && c.ClientSecretFile != "" {
		bad("client_secret_file", "contradicts client_secret; remove one of them")
	}
	if c.TokenURL == "" {
		if c.ClientID != "" || c.ClientSecret != "" || c.ClientSecretFile != "" || len(c.Scopes) > 0 {
			bad("token_url", "must not be empty with client_id, client_secret or scopes")
		}
		return errors.Join(errs...)
	}
	if err := client.ValidateURL("token_url", c.TokenURL); err != nil {
		errs = append(errs, err)
	}
	if c.TokenFile != "" {
		bad("token_url", "contradicts token_file; remove one of them")
	}
	if c.ClientID == "" {
		bad("client_id", "must not be empty with token_url, which issues tokens for client credentials")
	}
	if c.ClientSecret == "" && c.ClientSecretFile == "" {
		bad("client_secret", "must not be empty with token_url; set client_secret or client_secret_file")
	}
	return errors.Join(errs...)
}
