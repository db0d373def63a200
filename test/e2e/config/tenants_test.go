package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// TestTenantBypass checks which settings make the clients of remote storage and admin acceptable
// beside a listener that separates tenants. testdata/bad/tenants-bypassed.yaml has the error.
func TestTenantBypass(t *testing.T) {
	_, body := splitWant(t, "testdata/bad/tenants-bypassed.yaml")
	file := filepath.Join(t.TempDir(), "tracing.yaml")
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(file))
	for _, name := range []string{"tokens", "c", "k", "ca", "users"} { // validate checks that they exist
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const remote, admin, client = "extensions.remote_storage.", "extensions.admin.", "receivers.otlp.protocols.http."
	validate := func(settings ...string) (code int, stderr string) {
		args := append([]string{"validate", "--config", file}, harness.SetArgs(settings...)...)
		code, _, stderr = harness.RunCommand(t, args...)
		return code, stderr
	}
	for _, settings := range [][]string{
		{remote + "tenancy.enabled=true"},
		{remote + `tenant_header=""`},
		{remote + "auth.bearer_tokens_file=tokens"},
		{remote + "tls.cert_file=c", remote + "tls.key_file=k", remote + "tls.client_ca_file=ca"},
		{client + "tenancy.enabled=false"},
	} {
		if code, stderr := validate(settings...); code != 0 || strings.Contains(stderr, "remote_storage") {
			t.Errorf("%v: exit code %d, %s", settings, code, stderr)
		}
	}
	if code, stderr := validate(remote+"tls.cert_file=c", remote+"tls.key_file=k"); code != 2 {
		t.Errorf("TLS without client certificates: exit code %d, %s", code, stderr)
	}
	tenancy := remote + "tenancy.enabled=true"
	if _, stderr := validate(tenancy); !strings.Contains(stderr, "can delete the spans of any tenant if the store has allow_delete") {
		t.Errorf("admin on all addresses: no warning, but %q", stderr)
	}
	for _, setting := range []string{"endpoint=localhost:1", "endpoint=127.0.0.2:1", `endpoint="[::1]:1"`, "auth.htpasswd_file=users"} {
		if code, stderr := validate(tenancy, admin+setting); code != 0 || stderr != "" {
			t.Errorf("admin with %s: exit code %d, %s", setting, code, stderr)
		}
	}
}
