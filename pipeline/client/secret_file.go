package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/certs"
)

// SecretFile is a file that contains one secret, such as a password. It is reread when it changes.
// It is safe for concurrent use after Load.
type SecretFile struct {
	reloader *certs.Reloader[pipeline.Secret]
}

// NewSecretFile returns the secret of a file. It does not read the file.
func NewSecretFile(set pipeline.Settings, file string) *SecretFile {
	parse := func(contents [][]byte) (pipeline.Secret, error) {
		secret := strings.TrimRight(string(contents[0]), "\r\n")
		if secret == "" {
			return "", fmt.Errorf("%s: %w", file, errNoSecret)
		}
		return pipeline.Secret(secret), nil
	}
	return &SecretFile{certs.NewReloader([]string{file}, reloadOptions(set, "secrets", pipeline.Duration(defaultReload)), parse)}
}

var errNoSecret = errors.New("file is empty")

// Load reads the file.
func (s *SecretFile) Load() error { return s.reloader.Load() }

// Get returns the current secret, or the previous one if the file can no longer be read.
func (s *SecretFile) Get() pipeline.Secret { return s.reloader.Get() }
