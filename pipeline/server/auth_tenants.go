package server

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"
)

// grant lists the tenants whose data credentials give access to. nil is all tenants.
type grant []string

// everyTenant stands for all tenants in a list.
const everyTenant = "*"

// check reports an empty list and invalid names.
func (g grant) check() error {
	if len(g) == 0 {
		return errors.New("no tenants; list them, or * for all")
	}
	for _, name := range g {
		if !validTenant(name) {
			return fmt.Errorf("%.300q is not a valid tenant name; use 1 to %d printable ASCII characters without leading or trailing spaces",
				name, maxTenantLength)
		}
	}
	return nil
}

// deny returns the refusal of a request for a tenant, or nil if it is allowed. Without tenancy, the
// tenant is "", which only credentials for all tenants may use.
func (g grant) deny(tenant string) *Denied {
	if g == nil || slices.Contains(g, everyTenant) || slices.Contains(g, tenant) {
		return nil
	}
	if tenant == "" {
		return &Denied{Reason: ReasonTenant, Msg: "these credentials are limited to tenants, and this listener does not separate tenants"}
	}
	return &Denied{Reason: ReasonTenant, Msg: "these credentials do not allow this tenant"}
}

// parseTokens reads a file of tokens. If one token has a list of tenants, all must have one:
// otherwise a forgotten list would give access to all tenants.
func parseTokens(file string, content []byte) (map[[sha256.Size]byte]grant, error) {
	tokens := map[[sha256.Size]byte]grant{}
	number, without, limited := 0, 0, false
	for line := range bytes.Lines(content) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		token, list, listed := strings.Cut(strings.ReplaceAll(string(line), "\t", " "), " ")
		var tenants grant
		if listed {
			for name := range strings.SplitSeq(list, ",") {
				tenants = append(tenants, strings.TrimSpace(name))
			}
			if err := tenants.check(); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, number, err)
			}
			limited = true
		} else if without == 0 {
			without = number
		}
		tokens[sha256.Sum256([]byte(token))] = tenants
	}
	if limited && without > 0 {
		return nil, fmt.Errorf("%s:%d: token without tenants, while others have some; add its tenants after a space, or * for all", file, without)
	}
	return tokens, nil
}

// tenantsOf returns the tenants of a user. A user who is not listed has none.
func (a *authenticator) tenantsOf(user string) grant {
	if len(a.config.UserTenants) == 0 {
		return nil
	}
	return append(grant{}, a.config.UserTenants[user]...)
}

// warnOfTenants logs a warning if the listener has several tenants but credentials do not restrict
// clients to some of them.
func (a *authenticator) warnOfTenants(s *secrets) {
	tokens := 0
	for _, tenants := range s.tokens {
		if tenants == nil {
			tokens++
		}
	}
	users := s.users.Len()
	if len(a.config.UserTenants) > 0 {
		users = 0
	}
	if tokens+users > 0 {
		a.log.Warn("clients can name any tenant, because their credentials are not limited to tenants", zap.Int("tokens", tokens),
			zap.Int("users", users), zap.String("remedy",
				"list the tenants of each token after it in auth::bearer_tokens_file, and the tenants of each user in auth::user_tenants"))
	}
}
