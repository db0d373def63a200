package repo_test

import (
	"go/ast"
	"go/parser"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// products are names of other programs and of this program's stores. Factories and flags bring them
// into the framework.
var products = regexp.MustCompile(`(?i)kafka|badger|cassandra|clickhouse|elasticsearch|opensearch|jaeger|zipkin|tempo\b|blackhole`)

// storeTypes are types of components; elsewhere in the framework, the words have other meanings.
var storeTypes = []string{"memory", "disk", "nop", "grpc", "native", "remote_storage"}

// productsAllowed lists what the framework may name, by file: protocols, and documented
// compatibility of its own.
// Variables are those of presets; the metrics have a key of their own, compat_metrics.
var productsAllowed = map[string]string{
	"pipeline/commands/variables.go":           "ClickHouse|Kafka|CLICKHOUSE|KAFKA|clickhouse|kafka",
	"pipeline/internal/config/service.go":      "jaeger_",
	"pipeline/internal/host/compat_metrics.go": "jaeger",
	"pipeline/sampling/trace.go":               "Jaeger client library",
}

// TestFrameworkKnowsNoProduct checks the names and texts in the code of the framework.
func TestFrameworkKnowsNoProduct(t *testing.T) {
	used := map[string]bool{}
	eachGoFile(t, parser.SkipObjectResolution, func(dir, file string, f *ast.File) {
		if !strings.HasPrefix(file, "pipeline/") || strings.HasSuffix(file, "_test.go") || strings.HasSuffix(dir, "test") {
			return
		}
		check := func(text string) {
			if allowed := productsAllowed[file]; allowed != "" {
				rest := regexp.MustCompile(allowed).ReplaceAllString(text, "")
				used[file] = used[file] || rest != text
				text = rest
			}
			if name := products.FindString(text); name != "" {
				t.Errorf("%s names %q; move what is about it to the component, internal/compatflags or internal/foreign", file, name)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.Ident:
				check(n.Name)
			case *ast.BasicLit:
				check(n.Value)
				for _, typ := range storeTypes {
					if dir == "pipeline/internal/config" && n.Value == strconv.Quote(typ) {
						t.Errorf("%s names the component type %q", file, typ)
					}
				}
			}
			return true
		})
	})
	for file := range productsAllowed {
		if !used[file] {
			t.Errorf("productsAllowed: %s names no product", file)
		}
	}
}
