package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// authenticator authenticates connections with the current secrets.
type authenticator struct {
	set       pipeline.Settings
	cfg       SASLConfig
	on        bool
	encrypted bool
	password  *secret
	token     *client.SecretFile // nil: from issuer
	issuer    *tokenIssuer       // nil: from token
}

func newAuthenticator(set pipeline.Settings, c ClientConfig) (*authenticator, error) {
	a := &authenticator{set: set, encrypted: c.encrypted()}
	a.cfg, a.on = c.Auth.SASL.Get()
	if !a.on {
		return a, nil
	}
	a.password = newSecret(set, a.cfg.Password, a.cfg.PasswordFile)
	switch {
	case a.cfg.OAuth.TokenFile != "":
		a.token = client.NewSecretFile(set, a.cfg.OAuth.TokenFile)
	case a.cfg.OAuth.TokenURL != "":
		var err error
		if a.issuer, err = newTokenIssuer(set, a.cfg.OAuth); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// load reads secrets for the first time.
func (a *authenticator) load(ctx context.Context) error {
	if !a.on {
		return nil
	}
	if err := a.password.load(); err != nil {
		return fmt.Errorf("auth::sasl::password_file: %w", err)
	}
	if a.token != nil {
		if err := a.token.Load(); err != nil {
			return fmt.Errorf("auth::sasl::oauth::token_file: %w", err)
		}
	}
	if a.issuer != nil {
		if err := a.issuer.start(ctx); err != nil {
			return fmt.Errorf("auth::sasl::oauth: %w", err)
		}
	}
	if !a.encrypted && (a.cfg.Mechanism == plainMechanism || a.cfg.Mechanism == oauthMechanism) {
		a.set.Logger.Warn("sending the credentials of auth::sasl in plaintext, because the block tls is missing")
	}
	return nil
}

func (a *authenticator) close(ctx context.Context) error {
	if a.issuer == nil {
		return nil
	}
	return a.issuer.stop(ctx)
}

// mechanism returns the SASL mechanism, or nil.
func (a *authenticator) mechanism() sasl.Mechanism {
	if !a.on {
		return nil
	}
	scramAuth := func(context.Context) (scram.Auth, error) {
		return scram.Auth{User: a.cfg.Username, Pass: a.password.get()}, nil
	}
	switch a.cfg.Mechanism {
	case scram256Mechanism:
		return scram.Sha256(scramAuth)
	case scram512Mechanism:
		return scram.Sha512(scramAuth)
	case plainMechanism:
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			return plain.Auth{User: a.cfg.Username, Pass: a.password.get()}, nil
		})
	}
	return oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
		token, err := a.bearer(ctx)
		return oauth.Auth{Token: token, Extensions: a.cfg.OAuth.Extensions}, err
	})
}

// bearer returns the current token.
func (a *authenticator) bearer(ctx context.Context) (string, error) {
	switch {
	case a.token != nil:
		return string(a.token.Get()), nil
	case a.issuer != nil:
		return a.issuer.current(ctx)
	}
	return "", errors.New("auth::sasl::oauth has neither token_file nor token_url")
}

// secret is a secret of the configuration or of a file.
type secret struct {
	fixed pipeline.Secret
	file  *client.SecretFile // nil: fixed
}

func newSecret(set pipeline.Settings, fixed pipeline.Secret, file string) *secret {
	s := &secret{fixed: fixed}
	if file != "" {
		s.file = client.NewSecretFile(set, file)
	}
	return s
}

func (s *secret) load() error {
	if s.file == nil {
		return nil
	}
	return s.file.Load()
}

func (s *secret) get() string {
	if s.file == nil {
		return string(s.fixed)
	}
	return string(s.file.Get())
}
