package repo_test

import (
	"go/ast"
	"go/parser"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/tracing-backend/tracing"

// allowedImports lists the packages of this module that the packages in a folder may import. The
// entry with the longest matching folder applies. "." is the root of the module. "+" before a
// folder allows all packages in it and below. A package may always import packages below its own
// folder.
var allowedImports = map[string][]string{
	".":               {"+"},
	"cmd":             {".", "pipeline/app"},
	"config-examples": {},
	"pipeline": {
		"pipeline/commands", "pipeline/otlpdata", "pipeline/selftrace", "pipeline/status", "pipeline/storage/vfs",
		"pipeline/internal/errclass", "pipeline/internal/queueopt", "pipeline/internal/sysmem",
	},
	"pipeline/commands":              {"pipeline/status"},
	"pipeline/internal":              {},
	"pipeline/otlpdata":              {},
	"pipeline/sampling":              {},
	"pipeline/selftrace":             {"pipeline/otlpdata"},
	"pipeline/sampling/samplingtest": {"pipeline/sampling"},
	"pipeline/tracestore":            {"pipeline/otlpdata", "pipeline/tracestore/failure"},
	"pipeline/tracestore/failure":    {"pipeline/otlpdata"},
	"pipeline/tracestore/storequery": {"pipeline/otlpdata", "pipeline/tracestore", "pipeline/tracestore/failure"},
	"pipeline/tracestore/aggregates": {"pipeline/tracestore", "pipeline/tracestore/storequery"},
	"pipeline/tracestore/callpath":   {"pipeline/otlpdata", "pipeline/tracestore", "pipeline/tracestore/storequery"},
	"pipeline/tracestore/storeadmin": {"pipeline", "pipeline/otlpdata", "pipeline/tracestore"},
	"pipeline/storage":               {"+pipeline/storage"},
	"pipeline/server": {
		"pipeline", "pipeline/otlpdata", "pipeline/selftrace", "pipeline/status", "+pipeline/internal/certs",
		"+pipeline/server",
	},
	"pipeline/internal/certs": {"pipeline"},
	"pipeline/client":         {"pipeline", "pipeline/selftrace", "pipeline/server", "+pipeline/internal/certs"},
	"pipeline/otelcol":        {"pipeline", "pipeline/internal/config/yamltree", "pipeline/otlpdata", "pipeline/sampling"},
	"pipeline/pipelinetest":   {"pipeline", "pipeline/app", "pipeline/otlpdata"},
	"pipeline/tracestore/storetest": {
		"pipeline/soak", "pipeline", "pipeline/otlpdata", "pipeline/tracestore", "pipeline/tracestore/aggregates",
		"pipeline/tracestore/callpath", "pipeline/tracestore/storequery",
	},
	"receivers":      {"+pipeline", "+internal/wire", "+internal/translate", "internal/kafka"},
	"processors":     {"+pipeline", "internal/collectorkeys"},
	"connectors":     {"+pipeline"},
	"exporters/grpc": {"+pipeline", "+internal/wire", "+internal/translate", "internal/multistore"},
	"exporters": {
		"+pipeline", "+internal/wire", "+internal/translate", "internal/otlpclient", "internal/otlpparts", "internal/kafka",
	},
	"exporters/disk":       {"+pipeline", "+exporters/disk/internal"},
	"exporters/clickhouse": {"+pipeline", "+exporters/clickhouse"},
	"extensions":           {"+pipeline", "+internal/wire", "+internal/translate", "internal/processview", "internal/traceql"},
	"extensions/query": {
		"+pipeline", "+internal/wire", "+internal/translate", "internal/processview", "internal/traceql", "internal/docsite", "internal/webui",
		"internal/demo", "+extensions/query/internal",
	},
	"extensions/query/internal/querytest": {
		"+pipeline", "+extensions/query/internal", "exporters/memory", "internal/golden", "internal/multistore",
	},
	"examples":                       {".", "+pipeline"},
	"internal/wire":                  {"+internal/wire"},
	"internal/translate":             {"+pipeline/otlpdata", "pipeline/sampling", "+internal/wire", "+internal/translate"},
	"internal/translate/pagetoken":   {"pipeline/otlpdata", "pipeline/tracestore"},
	"internal/translate/queryfilter": {"+internal/wire", "internal/traceql", "pipeline/otlpdata", "+pipeline/tracestore"},
	"internal/translate/storewire":   {"pipeline/otlpdata", "pipeline/tracestore"},
	"internal/processview":           {"pipeline", "pipeline/sampling", "pipeline/status"},
	"internal/commands/canary":       {"pipeline", "pipeline/commands", "pipeline/otlpdata", "pipeline/server"},
	"internal/collectorkeys":         {},
	"internal/demo":                  {},
	"internal/commands/demo":         {"internal/demo", "pipeline", "pipeline/commands", "pipeline/app"},
	"internal/traceql":               {"pipeline/otlpdata", "+pipeline/tracestore"},
	"internal/commands/traces":       {"pipeline", "pipeline/commands", "internal/traceql"},
	"internal/compatflags":           {"pipeline"},
	"internal/commands/migrate":      {"pipeline", "pipeline/commands", "pipeline/app", "internal/foreign"},
	"internal/commands/schema":       {"pipeline", "pipeline/commands", "pipeline/app", "exporters/clickhouse"},
	"internal/commands/replay": {
		"pipeline", "pipeline/commands", "pipeline/app", "internal/kafka", "receivers/kafka", "exporters/disk", "exporters/clickhouse",
	},
	"internal/commands/doctor": {
		"pipeline", "pipeline/commands", "pipeline/app", "pipeline/client", "pipeline/otlpdata", "pipeline/server",
		"pipeline/server/udp", "pipeline/status",
		"pipeline/storage/vfs", "+internal/wire", "+internal/translate", "internal/commands/canary", "internal/kafka",
		"exporters/disk", "exporters/clickhouse",
	},
	"internal/kafka":         {"+pipeline", "+internal/wire", "+internal/translate", "internal/otlpparts"},
	"internal/otlpparts":     {"pipeline", "+pipeline/otlpdata"},
	"internal/foreign":       {},
	"internal/docsite":       {},
	"internal/docsite/build": {"internal/docsite"},
	"internal/golden":        {},
	"internal/multistore":    {"+pipeline"},
	"internal/otlpclient":    {"pipeline", "pipeline/client", "pipeline/otlpdata"},
	"internal/webui":         {},
	"pipeline/soak":          {},
	"test/harness":           {"pipeline/otlpdata", "pipeline/soak", "+internal/wire", "internal/golden", "+test/bench"},
	"test/harness/inprocess": {".", "pipeline", "pipeline/app", "test/harness"},
	"test/bench":             {"pipeline/otlpdata", "+test/bench"},
	"test/compare":           {"test/bench"},
	"test/engines":           {".", "pipeline", "pipeline/app", "+exporters/clickhouse", "+test/engines", "test/harness", "+test/bench"},
	"test/simulation":        {"test/simulation/simnet"},
	"tools":                  {"+"},

	// The host: cli uses host, host uses config and delivery.
	"pipeline/app": {
		"pipeline", "pipeline/status", "pipeline/internal/cli", "pipeline/internal/config", "pipeline/internal/host",
	},
	"pipeline/status": {},
	"pipeline/internal/cli": {
		"pipeline", "pipeline/commands", "pipeline/status", "+pipeline/internal/config", "pipeline/internal/host",
	},
	"pipeline/internal/config":          {"pipeline", "pipeline/commands", "pipeline/internal/selfexport", "internal/foreign"},
	"pipeline/internal/selfexport":      {"pipeline", "pipeline/selftrace"},
	"pipeline/internal/config/yamltree": {"pipeline"},
	"pipeline/internal/delivery": {
		"pipeline", "pipeline/otlpdata", "pipeline/selftrace", "pipeline/status", "+pipeline/storage", "pipeline/internal/errclass",
		"pipeline/internal/queueopt",
	},
	"pipeline/internal/errclass": {"pipeline/otlpdata"},
	"pipeline/internal/hosttest": {"pipeline", "pipeline/app", "pipeline/otlpdata", "pipeline/storage/vfs"},
	"pipeline/internal/host": {
		"pipeline", "pipeline/otlpdata", "pipeline/selftrace", "pipeline/internal/selfexport", "pipeline/status",
		"pipeline/internal/config", "pipeline/internal/delivery",
		"pipeline/internal/sysmem", "pipeline/storage/vfs",
	},

	// Files and memory of the span store.
	"exporters/disk/internal/column":        {},
	"exporters/disk/internal/rows":          {"pipeline/otlpdata"},
	"exporters/disk/internal/rows/rowstest": {"pipeline/otlpdata", "exporters/disk/internal/rows"},
	"exporters/disk/internal/stats":         {"pipeline/otlpdata", "pipeline/tracestore"},
	"exporters/disk/internal/source":        {"pipeline/otlpdata", "exporters/disk/internal/rows", "exporters/disk/internal/stats"},
	"exporters/disk/internal/block": {
		"pipeline/otlpdata", "exporters/disk/internal/column", "exporters/disk/internal/rows",
		"exporters/disk/internal/source",
	},
	"exporters/disk/internal/namelist": {"pipeline/otlpdata", "pipeline/tracestore", "exporters/disk/internal/source"},
	"exporters/disk/internal/segment": {
		"pipeline/otlpdata", "pipeline/storage/vfs", "exporters/disk/internal/block",
		"exporters/disk/internal/column", "exporters/disk/internal/namelist", "exporters/disk/internal/rows",
		"exporters/disk/internal/source", "exporters/disk/internal/stats",
	},
	"exporters/disk/internal/memtable": {
		"pipeline/otlpdata", "pipeline/storage/wal", "exporters/disk/internal/rows",
		"exporters/disk/internal/source", "exporters/disk/internal/stats",
	},
	"exporters/disk/internal/tombstone": {
		"pipeline/otlpdata", "pipeline/storage/vfs", "exporters/disk/internal/namelist",
		"exporters/disk/internal/rows", "exporters/disk/internal/source",
	},
	"exporters/disk/internal/directory": {"pipeline/storage/vfs"},

	// Queries of the span store: find, aggregate, graph and names import scan, and not each other.
	"exporters/disk/internal/scan": {
		"+pipeline", "exporters/disk/internal/rows", "exporters/disk/internal/source",
		"exporters/disk/internal/stats",
	},
	"exporters/disk/internal/scan/scantest": {
		"+pipeline", "exporters/disk/internal/memtable", "exporters/disk/internal/rows",
		"exporters/disk/internal/scan", "exporters/disk/internal/segment", "exporters/disk/internal/source",
	},
	"exporters/disk/internal/find": {
		"+pipeline", "exporters/disk/internal/rows", "exporters/disk/internal/source",
		"exporters/disk/internal/scan",
	},
	"exporters/disk/internal/aggregate": {
		"+pipeline", "exporters/disk/internal/rows", "exporters/disk/internal/source",
		"exporters/disk/internal/scan", "exporters/disk/internal/stats",
	},
	"exporters/disk/internal/graph": {
		"+pipeline", "exporters/disk/internal/rows", "exporters/disk/internal/source",
		"exporters/disk/internal/scan", "exporters/disk/internal/block", "exporters/disk/internal/stats",
	},
	"exporters/disk/internal/names": {
		"+pipeline", "exporters/disk/internal/rows", "exporters/disk/internal/source",
		"exporters/disk/internal/scan",
	},
}

// TestImports checks that the imports of all packages are in the table: components import the
// framework and never each other.
func TestImports(t *testing.T) {
	seen := 0
	eachGoFile(t, parser.ImportsOnly, func(dir, file string, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		seen++
		folder := entryFor(dir)
		if folder == "" {
			t.Errorf("%s: no entry for folder %s; add it to the table in test/repo/imports_test.go", file, dir)
			return
		}
		for _, imp := range f.Imports {
			target, _ := strconv.Unquote(imp.Path.Value)
			below, ours := strings.CutPrefix(target, module)
			if !ours {
				continue
			}
			below = strings.TrimPrefix(below, "/")
			if below == "" {
				below = "."
			}
			if !allowed(allowedImports[folder], dir, below) || isComponent(dir) && below == "pipeline/app" {
				t.Errorf("%s: packages in %s must not import %s", file, folder, target)
			}
		}
	})
	if seen < 20 {
		t.Fatalf("only %d files found", seen)
	}
}

// isComponent reports whether a folder holds components or their parts. They do not know the
// program that they run in. querytest starts one for tests.
func isComponent(dir string) bool {
	kind, _, _ := strings.Cut(dir, "/")
	return slices.Contains([]string{"receivers", "processors", "exporters", "extensions"}, kind) && path.Base(dir) != "querytest"
}

// entryFor returns the key of the table that applies to a folder, or "".
func entryFor(dir string) string {
	for d := dir; ; d = path.Dir(d) {
		if _, ok := allowedImports[d]; ok && (d != "." || dir == ".") {
			return d
		}
		if d == "." {
			return ""
		}
	}
}

// allowed reports whether a package in dir may import target.
func allowed(may []string, dir, target string) bool {
	if strings.HasPrefix(target, dir+"/") && dir != "." {
		return true
	}
	for _, m := range may {
		if tree, ok := strings.CutPrefix(m, "+"); ok && (tree == "" || target == tree || strings.HasPrefix(target, tree+"/")) {
			return true
		}
		if m == target {
			return true
		}
	}
	return false
}
