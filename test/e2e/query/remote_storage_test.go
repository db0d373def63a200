package query_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// probe is an extension that passes its store to a test.
type probe struct{ store storetest.Subject }

type probeConfig struct {
	Storage pipeline.Ref[storetest.Subject] `yaml:"storage" doc:"Store." ref:"a span store"`
}

func (p *probe) factory() pipeline.Factory {
	return pipeline.Extension("probe", func() probeConfig { return probeConfig{} }, func(_ pipeline.Settings, c probeConfig) (*probe, error) {
		p.store = c.Storage.Get()
		return p, nil
	})
}

// serveStore runs a remote storage server for a store, and returns its address. keys is added to
// the configuration of the server.
func serveStore(tb testing.TB, store, keys string) string {
	tb.Helper()
	app := inprocess.StartYAML(tb, fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
exporters: {%[1]s: {allow_delete: true}, memory/archive: }
extensions:
  remote_storage: {endpoint: "localhost:0", storage: %[1]s, archive_storage: memory/archive, allow_delete: true%[3]s}
service:
  data_dir: %[2]s
  extensions: [remote_storage]
  pipelines: {traces: {receivers: [otlp], exporters: [%[1]s]}}
`, store, tb.TempDir(), keys))
	return app.Addr("remote_storage", "grpc")
}

// useStore returns the grpc exporter for an address. keys is added to its configuration.
func useStore(tb testing.TB, addr, keys string) storetest.Subject {
	tb.Helper()
	var p probe
	inprocess.StartYAML(tb, fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
exporters: {grpc: {endpoint: %q, tls: {insecure: true}, compression: none, wait_for_ready: true%s}}
extensions: {probe: {storage: grpc}}
service:
  data_dir: %s
  extensions: [probe]
  pipelines: {traces: {receivers: [otlp], exporters: [grpc]}}
`, addr, keys, tb.TempDir()), p.factory())
	return p.store
}

// stores returns the stores that the test suite runs on through remote storage.
func stores(t *testing.T) []string {
	if testing.Short() {
		return []string{"memory"}
	}
	return []string{"memory", "disk"}
}

// openEnd is the test of the suite that finds spans of the far future by searches without an end.
// Searches of the standard protocol end now.
const openEnd = "minimum and maximum times"

// TestRemoteStoresV2 runs the test suite for stores through remote storage v2.
func TestRemoteStoresV2(t *testing.T) {
	harness.SkipIfShort(t)
	for _, store := range stores(t) {
		t.Run(store, func(t *testing.T) {
			subject := func(tb testing.TB) storetest.Subject {
				return useStore(tb, serveStore(tb, store, ""), ", protocol: v2")
			}
			same := func(_ testing.TB, b *otlpdata.Batch) *otlpdata.Batch { return b }
			storetest.LossyStore(t, subject, same, openEnd)
		})
	}
}

// TestRemoteStores runs the test suite for stores through the store service, without any exception.
func TestRemoteStores(t *testing.T) {
	for _, store := range stores(t) {
		t.Run(store, func(t *testing.T) {
			storetest.Variant(t, func(tb testing.TB) storetest.Subject {
				return useStore(tb, serveStore(tb, store, ", max_limit: 50"), "")
			}, "all span fields are returned", "an exhausted budget is reported", "canceled queries", "queries that end within long values",
				"early stop and writes while reading", "concurrent writers and readers", "random span sets", "random calls",
				"random rates, errors and durations", "random aggregates", "random path profiles", "random deletions",
				"random spans and queries", "feeds", "outlines", "versions of traces", "attributes with several names")
		})
	}
}

// viaNative converts a batch to the native model and back. A second conversion loses nothing more.
func viaNative(t testing.TB, b *otlpdata.Batch) *otlpdata.Batch {
	t.Helper()
	from := b
	chunks := native.NewChunks(native.ChunkLimits{Spans: b.Len() + 1, Bytes: 1 << 30}, func(chunk []byte) error {
		otlp, err := native.FromSpans(0, chunk)
		if err == nil {
			b, err = otlpdata.FromOTLP(otlp, b.Meta(), otlpdata.Limits{})
		}
		return err
	})
	if err := from.Walk(chunks); err != nil {
		t.Fatal(err)
	}
	if err := chunks.Finish(); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRemoteStoresV1 runs the test suite for stores through remote storage v1, without what the
// native model cannot represent.
func TestRemoteStoresV1(t *testing.T) {
	harness.SkipIfShort(t)
	twice := func(tb testing.TB, b *otlpdata.Batch) *otlpdata.Batch { return viaNative(tb, viaNative(tb, b)) }
	for _, store := range stores(t) {
		t.Run(store, func(t *testing.T) {
			subject := func(tb testing.TB) storetest.Subject {
				return useStore(tb, serveStore(tb, store, ""), ", protocol: v1")
			}
			storetest.LossyStore(t, subject, twice,
				openEnd,
				"all span fields are returned", // not the attributes of scopes and links
				"different spans with the same id are kept", // schema URLs are lost
				"unicode and invalid UTF-8",                 // repaired; a lone status message becomes an attribute
				"arrays",                                    // have only their JSON
				"concurrent writers and readers",            // readers may see some of the spans of a request
				"missing and invalid service names")         // an empty name and a missing name are the same
		})
	}
}

// TestRandomSpansOverV1 compares a store behind remote storage v1 with a model, for random spans
// and queries.
func TestRandomSpansOverV1(t *testing.T) {
	for i, store := range stores(t) {
		t.Run(store, func(t *testing.T) {
			m := storetest.NewModel(t, uint64(i))
			s := useStore(t, serveStore(t, store, ""), ", protocol: v1")
			for range 10 {
				for range 5 {
					b := viaNative(t, viaNative(t, m.Next()))
					if err := s.Consume(t.Context(), b); err != nil {
						t.Fatal(err)
					}
					m.Record(b)
				}
				for range 20 {
					m.Check(s)
				}
			}
			m.CheckAll(s)
		})
	}
}

// TestRemoteStoreOverTLSForTenants checks mutual TLS, bearer tokens, and that every call names its
// tenant.
func TestRemoteStoreOverTLSForTenants(t *testing.T) {
	dir := t.TempDir()
	harness.SelfSigned(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	app := inprocess.StartYAML(t, fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
exporters: {memory: }
extensions:
  remote_storage:
    endpoint: "localhost:0"
    storage: memory
    tls: {cert_file: %[1]s/cert.pem, key_file: %[1]s/key.pem, client_ca_file: %[1]s/cert.pem}
    auth: {bearer_tokens_file: %[1]s/token}
    tenancy: {enabled: true, tenants: [acme, other]}
service: {data_dir: %[1]s, extensions: [remote_storage], pipelines: {traces: {receivers: [otlp], exporters: [memory]}}}
`, dir))
	use := func(keys string) storetest.Subject {
		var p probe
		inprocess.StartYAML(t, fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
exporters: {grpc: {endpoint: %q, tls: {ca_file: %[2]s/cert.pem, server_name_override: localhost%s}, auth: {bearer_token_file: %[2]s/token}}}
extensions: {probe: {storage: grpc}}
service: {data_dir: %[2]s/client, extensions: [probe], pipelines: {traces: {receivers: [otlp], exporters: [grpc]}}}
`, app.Addr("remote_storage", "grpc"), dir, keys), p.factory())
		return p.store
	}
	certificate := fmt.Sprintf(", cert_file: %[1]s/cert.pem, key_file: %[1]s/key.pem", dir)
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetTraceID(pcommon.TraceID{1})
	if err := use(certificate).Consume(t.Context(), otlpdata.FromTraces(td, otlpdata.Meta{Tenant: "acme"})); err != nil {
		t.Fatal(err)
	}
	reader := use(certificate)
	for tenant, want := range map[string]int{"acme": 1, "other": 0} {
		if n := spansOf(t, reader, tenant, otlpdata.TraceID{1}); n != want {
			t.Errorf("tenant %s has %d spans, want %d", tenant, n, want)
		}
	}
	if _, _, err := use(certificate).Services(t.Context(), "unknown", tracestore.NameQuery{}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("unknown tenant: %v", err)
	}
	if _, _, err := use("").Services(t.Context(), "acme", tracestore.NameQuery{}); status.Code(err) != codes.Unavailable {
		t.Errorf("without a certificate: %v", err)
	}
}

// TestRemoteArchive checks that an archive is separate from the store, and that it can be read by
// trace id only.
func TestRemoteArchive(t *testing.T) {
	addr := serveStore(t, "memory", ", max_limit: 50")
	store, archive := useStore(t, addr, ""), useStore(t, addr, ", archive: true")
	m := storetest.NewModel(t, 1)
	b := viaNative(t, m.Next())
	if err := archive.Consume(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	ids := map[otlpdata.TraceID]int{}
	if err := tracestore.WalkSpans(b, func(s tracestore.Span) error { ids[s.TraceID]++; return nil }); err != nil {
		t.Fatal(err)
	}
	for id := range ids {
		if n := spansOf(t, archive, b.Meta().Tenant, id); n == 0 {
			t.Errorf("trace %s is not in the archive", id)
		}
		if n := spansOf(t, store, b.Meta().Tenant, id); n > 0 {
			t.Errorf("%d spans of trace %s are in the store", n, id)
		}
	}
	_, err := archive.Find(t.Context(), tracestore.Query{}, tracestore.WantIDs)
	if err == nil || !strings.Contains(err.Error(), "cannot be searched") {
		t.Errorf("searching the archive: %v", err)
	}
}

func spansOf(t *testing.T, r tracestore.Reader, tenant string, id otlpdata.TraceID) (spans int) {
	t.Helper()
	for tr, err := range r.Traces(t.Context(), tenant, []tracestore.TraceRef{{ID: id}}) {
		if err != nil {
			t.Fatal(err)
		}
		spans += tr.Spans.Len()
	}
	return spans
}
