// Package certs keeps what a listener, or a connection outwards, takes from files for its security in step with these files: certificates,
// private keys, authorities, tokens. Files are looked at when they are needed, at most once per interval; nothing runs in between. New
// certificates count for new handshakes only, and files that cannot be used leave those in force that were good.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// Files are the paths of PEM files; "" is none.
type Files struct {
	// Cert and Key are the own certificate, with the chain above it, and its private key: both or neither.
	Cert, Key string
	// CA are the certificates of whom to trust. A client without it trusts the system's roots; a server with it demands a client
	// certificate that one of them signed.
	CA string
	// SystemCAs makes a client that has a CA trust the system's roots as well.
	SystemCAs bool
}

// Source is a TLS configuration that follows its files. It is safe for concurrent use after Load.
type Source struct {
	base   *tls.Config
	follow *Follower[*tls.Config]
}

// ForServer returns a source for a listener. base holds everything that does not come from files, NextProtos among it.
func ForServer(base *tls.Config, f Files, o Options) *Source {
	return newSource(base, f, o, func(c *tls.Config, pool *x509.CertPool) {
		c.ClientCAs, c.ClientAuth = pool, tls.RequireAndVerifyClientCert
	})
}

// ForClient returns a source for connections outwards. base holds everything that does not come from files.
func ForClient(base *tls.Config, f Files, o Options) *Source {
	return newSource(base, f, o, func(c *tls.Config, pool *x509.CertPool) { c.RootCAs = pool })
}

func newSource(base *tls.Config, f Files, o Options, trust func(*tls.Config, *x509.CertPool)) *Source {
	parse := func(contents [][]byte) (*tls.Config, error) {
		c := base.Clone()
		if f.Cert != "" {
			pair, err := tls.X509KeyPair(contents[0], contents[1])
			if err != nil {
				return nil, fmt.Errorf("certificate %s with key %s: %w", f.Cert, f.Key, err)
			}
			c.Certificates = []tls.Certificate{pair}
		}
		if f.CA != "" {
			pool, err := f.pool(contents[2])
			if err != nil {
				return nil, err
			}
			trust(c, pool)
		}
		return c, nil
	}
	return &Source{base: base, follow: Follow([]string{f.Cert, f.Key, f.CA}, o, parse)}
}

// Load reads the files for the first time; it must have returned nil before anything else is called. The error names the file.
func (s *Source) Load() error { return s.follow.Load() }

// Config returns the configuration for a handshake now. It is shared: who changes it clones it first.
func (s *Source) Config() *tls.Config { return s.follow.Get() }

// Listener returns the configuration of a server that asks Config at every handshake. Sessions are resumed only as long as the files stay
// the same.
func (s *Source) Listener() *tls.Config {
	c := s.base.Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.Config(), nil }
	return c
}

func (f Files) pool(pem []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if f.SystemCAs {
		var err error
		if pool, err = x509.SystemCertPool(); err != nil {
			return nil, fmt.Errorf("reading the system's certificates: %w", err)
		}
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", f.CA)
	}
	return pool, nil
}

// Versions returns the numbers of the least and the greatest TLS version, each written `1.0` to `1.3`, or "" for none (0). The errors are of
// the one and of the other.
func Versions(least, most string) (lo, hi uint16, errLeast, errMost error) {
	lo, errLeast = version(least)
	hi, errMost = version(most)
	if errMost == nil && hi != 0 && hi < lo {
		errMost = fmt.Errorf("%s is below min_version (%s)", most, least)
	}
	return lo, hi, errLeast, errMost
}

func version(s string) (uint16, error) {
	versions := map[string]uint16{"": 0, "1.0": tls.VersionTLS10, "1.1": tls.VersionTLS11, "1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}
	v, ok := versions[s]
	if !ok {
		return 0, fmt.Errorf("%q is not a version of TLS; write 1.0, 1.1, 1.2 or 1.3", s)
	}
	return v, nil
}
