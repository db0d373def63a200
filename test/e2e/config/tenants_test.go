package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestTenantBypass checks which settings make the clients of remote storage acceptable beside a
// listener that separates tenants. testdata/bad/tenants-bypassed.yaml has the error.
func TestTenantBypass(t *testing.T) {
	_, body := splitWant(t, "testdata/bad/tenants-bypassed.yaml")
	file := filepath.Join(t.TempDir(), "tracing.yaml")
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(file))
	for _, name := range []string{"tokens", "c", "k", "ca"} { // validate checks that they exist
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const remote, client = "extensions.remote_storage.", "receivers.otlp.protocols.http."
	validate := func(settings ...string) (code int, stderr string) {
		args := append([]string{"validate", "--config", file}, harness.SetArgs(settings...)...)
		code, _, stderr = inprocess.RunCommand(t, args...)
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
	if code, stderr := validate(tenancy); code != 0 || stderr != "" {
		t.Errorf("admin on all addresses: exit code %d, %s", code, stderr)
	}
}

// Datagrams cannot name a tenant: a receiver of them gives one to its spans, or there is a warning.
func TestTenantOfDatagrams(t *testing.T) {
	const config = `
receivers: {thriftudp: {compact: {endpoint: "127.0.0.1:0"} %s}}
exporters: {memory: }
extensions:
  query: {storage: memory, http: {endpoint: "127.0.0.1:0", tenancy: {tenants: [acme, globex]}}}
service: {extensions: [query], pipelines: {traces: {receivers: [thriftudp], exporters: [memory]}}}`
	for tenant, want := range map[string]string{
		"":               "receivers.thriftudp: extensions.query.http separates tenants, but here spans belong to no tenant",
		", tenant: acme": "",
	} {
		file := filepath.Join(t.TempDir(), "tracing.yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, config, tenant), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := inprocess.RunCommand(t, "validate", "--config", file); code != 0 || !strings.Contains(stderr, want) ||
			want == "" && stderr != "" {
			t.Errorf("%q: exit code %d, %s", tenant, code, stderr)
		}
	}
}
