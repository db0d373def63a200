package querytest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Golden compares responses with files.
type Golden struct {
	Routes  func(*core.Backend) http.Handler
	Store   func(t *testing.T, name string) core.Store
	Headers []string // the headers that files have
}

// Run runs the files that match a pattern. A file is a request line, a line of dashes, and the
// whole response. Before the dashes there can be more lines:
//
//	store: the store, by a name for Golden.Store
//	archive: the archive, by a name for NewArchive; without this line there is none
//	body: the body of the request
//	skew: the maximum clock-skew adjustment
func (g Golden) Run(t *testing.T, pattern string) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files match %s: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(string(b), "---\n")
			golden.Check(t, file, head+"---\n"+g.answer(t, head))
		})
	}
}

func (g Golden) answer(t *testing.T, head string) string {
	request, rest, _ := strings.Cut(strings.TrimSpace(head), "\n")
	method, target, _ := strings.Cut(request, " ")
	options := make(map[string]string)
	for line := range strings.Lines(rest) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		options[name] = value
	}
	b, _ := NewBackend(t, g.Store(t, options["store"]), func(o *core.Options) {
		if name, ok := options["archive"]; ok {
			o.Archive = NewArchive(t, name)
		}
		if d, ok := options["skew"]; ok {
			var err error
			if o.Limits.ClockSkew, err = time.ParseDuration(d); err != nil {
				t.Fatal(err)
			}
		}
	})
	w := Record(g.Routes(b), httptest.NewRequest(method, target, strings.NewReader(options["body"])))
	var out bytes.Buffer
	fmt.Fprintln(&out, w.Code)
	for _, name := range g.Headers {
		if v := w.Header().Get(name); v != "" {
			fmt.Fprintf(&out, "%s: %s\n", name, v)
		}
	}
	if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
		t.Errorf("not JSON: %s", w.Body)
	}
	fmt.Fprintf(&out, "\n%s", w.Body)
	return out.String()
}

// ShopStore returns a store with Shop by the name that golden files use: "" for one with all
// capabilities, empty, broken, partly (its results are incomplete), plain (it has only the required
// methods), memory (a memory exporter), incident (a memory exporter with Incident), peers (a memory
// exporter with ShopWithPeers), detailed (a memory exporter with Detailed), or no peers (it knows
// dependencies but not peers).
func ShopStore(t *testing.T, name string) core.Store {
	t.Helper()
	store := NewStore(Shop())
	switch name {
	case "":
	case "empty":
		return NewStore(ptrace.NewTraces())
	case "broken":
		store.Fail = ErrStore
	case "partly":
		store.Outcome = tracestore.Outcome{Reasons: tracestore.Because(tracestore.ReasonDamage, "a part is gone")}
	case "memory":
		return FilledMemory(t, Shop())
	case "peers":
		return FilledMemory(t, ShopWithPeers())
	case "incident":
		return FilledMemory(t, Incident())
	case "detailed":
		return FilledMemory(t, Detailed())
	case "no peers":
		return noPeers{store, store}
	case "plain":
		return struct{ core.Store }{store}
	default:
		t.Fatalf("unknown store %q", name)
	}
	return store
}

// NewArchive returns an archive by the name that golden files use: empty, shop or broken.
func NewArchive(t *testing.T, name string) *Archive {
	t.Helper()
	switch name {
	case "empty":
		return &Archive{Store: NewStore(ptrace.NewTraces())}
	case "shop":
		return &Archive{Store: NewStore(Shop())}
	case "broken":
		store := NewStore(ptrace.NewTraces())
		store.Fail = ErrStore
		return &Archive{Store: store}
	}
	t.Fatalf("unknown archive %q", name)
	return nil
}

// noPeers is a store of another program, which counts only the calls between services.
type noPeers struct {
	core.Store
	all *Store
}

// Dependencies implements tracestore.Edges.
func (s noPeers) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	return s.all.Dependencies(ctx, tenant, from, to)
}

// Peers returns an error.
func (noPeers) Peers(context.Context, string, time.Time, time.Time) (tracestore.Graph, error) {
	return tracestore.Graph{}, tracestore.ErrUnsupported
}

// Edges returns an error.
func (noPeers) Edges(context.Context, string, tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
	return tracestore.EdgeGraph{}, tracestore.ErrUnsupported
}
