package certificates_test

import (
	"crypto/x509"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/tools/internal/certificates"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The image contains the certificates of the required version of the bundle. After an upgrade of
// the bundle, `go test ./internal/certificates -update` writes the file.
func TestFileIsCurrent(t *testing.T) {
	file, err := certificates.PEM()
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("..", "..", "..", "deploy", "docker", "rootfs", "etc", "ssl", "certs", "ca-certificates.crt"), string(file))
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(file) {
		t.Error("crypto/x509 finds no certificate in the file")
	}
}
