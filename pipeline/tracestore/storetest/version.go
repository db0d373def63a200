package storetest

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// checkVersions sends random requests and checks that the version of a trace changes with the
// trace.
func checkVersions(s *suite) {
	if _, err := s.store.TraceVersion(s.ctx, "", traceID(1)); errors.Is(err, tracestore.ErrUnsupported) {
		s.Skip("store knows no versions of traces")
	}
	version := func(tenant string, id otlpdata.TraceID) tracestore.TraceVersion {
		v, err := s.store.TraceVersion(s.ctx, tenant, id)
		if err != nil {
			s.Fatalf("version of trace %s: %v", id, err)
		}
		return v
	}
	g := generator{rand.New(rand.NewPCG(randomSeed(s), 23))}
	type key struct {
		tenant string
		id     otlpdata.TraceID
	}
	seen := make(map[key]map[uint64]int) // number of spans by version
	for range 30 {
		s.consume(s.encode(g.tenant(), g.request()))
		for _, tenant := range tenants() {
			for id, spans := range s.sent.tenant(tenant).traces {
				v, k := version(tenant, id), key{tenant, id}
				if v.Number == 0 || v.Stored.After(time.Now()) {
					s.Errorf("version of trace %s: %+v", id, v)
				}
				if seen[k] == nil {
					seen[k] = make(map[uint64]int)
				}
				if n, known := seen[k][v.Number]; known && n != len(spans) {
					s.Errorf("trace %s has %d and %d spans with the same version", id, n, len(spans))
				}
				seen[k][v.Number] = len(spans)
			}
		}
	}
	if _, ok := optional[tracestore.Deleter](s, s.store); ok {
		for k := range seen {
			before := version(k.tenant, k.id)
			s.delete(k.tenant, tracestore.Deletion{Traces: []otlpdata.TraceID{k.id}})
			if after := version(k.tenant, k.id); after.Number == before.Number && before.Number != 0 {
				s.Errorf("trace %s has the same version %d after it was deleted", k.id, before.Number)
			}
		}
	}
	if v := version("", traceID(1<<40)); v != (tracestore.TraceVersion{}) {
		s.Errorf("version of an unknown trace: %+v", v)
	}
}
