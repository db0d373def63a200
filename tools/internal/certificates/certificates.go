// Package certificates provides the root certificates in the container image.
package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// PEM returns the root certificates that Mozilla trusts for servers, as a file for TLS libraries.
// It leaves out roots that are trusted with a constraint, which such a file cannot express.
func PEM() ([]byte, error) {
	var file bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, fmt.Errorf("root certificate: %w", err)
		}
		fmt.Fprintf(&file, "# %s\n", certificate.Subject)
		if err := pem.Encode(&file, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return file.Bytes(), nil
}
