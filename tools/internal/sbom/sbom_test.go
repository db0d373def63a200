package sbom_test

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tracing-backend/tracing/tools/internal/licenses"
	"github.com/tracing-backend/tracing/tools/internal/sbom"
)

// TestBill writes the bill of materials of a program, and checks it against the schema of
// CycloneDX and the build information.
func TestBill(t *testing.T) {
	o := options(t)
	bill := write(t, o)
	if !bytes.Equal(bill, write(t, o)) {
		t.Error("two bills of the same program differ")
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(bill))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema(t).Validate(document); err != nil {
		t.Error(err)
	}

	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(bill), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	byURL := map[string]cdx.Component{}
	for _, c := range *bom.Components {
		byURL[c.PackageURL] = c
	}
	if want := 4; len(byURL) != want || len(*(*bom.Dependencies)[0].Dependencies) != want {
		t.Errorf("%d components, want %d", len(byURL), want)
	}
	for _, i := range o.Modules[1:] {
		c := byURL["pkg:golang/"+i.Name+"@"+i.Version]
		if c.Licenses == nil || (*c.Licenses)[0].License.ID != "MIT" || len((*c.Hashes)[0].Value) != 64 {
			t.Errorf("%s: %+v", i.Name, c)
		}
	}
	if _, ok := byURL["pkg:npm/%40preact/signals@2.0.0"]; !ok {
		t.Error("the package of the web UI is missing")
	}
	if got := bom.Metadata; got.Timestamp != "2026-01-31T00:00:00Z" || got.Component.Version != "1.2.3" {
		t.Errorf("metadata: %+v", got)
	}
}

// TestUnknownLicense checks that a module without a license is an error.
func TestUnknownLicense(t *testing.T) {
	o := options(t)
	o.Modules = o.Modules[:len(o.Modules)-1]
	if err := sbom.Write(&bytes.Buffer{}, o); err == nil || !strings.Contains(err.Error(), "no license found") {
		t.Errorf("error %v", err)
	}
}

// options describes a program of two modules, and gives both the license MIT.
func options(t *testing.T) sbom.Options {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("go", "build", "-o", program, "./testdata/program").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) != 2 {
		t.Fatalf("%d modules in the build information, want 2", len(info.Deps))
	}
	modules := []licenses.Item{{Name: "Go", IDs: []string{"BSD-3-Clause"}}}
	for _, m := range info.Deps {
		modules = append(modules, licenses.Item{Name: m.Path, Version: m.Version, IDs: []string{"MIT"}})
	}
	return sbom.Options{
		Program: program, Name: "tracing_1.2.3_linux_amd64", Version: "1.2.3", Modules: modules,
		UI:   []licenses.Item{{Name: "@preact/signals", Version: "2.0.0", IDs: []string{"MIT"}}},
		Time: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
	}
}

func write(t *testing.T, o sbom.Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := sbom.Write(&b, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// schema returns the schema that comes with the library.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	for id, file := range map[string]string{
		"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		f, err := os.Open(filepath.Join(strings.TrimSpace(string(out)), "schema", file))
		if err != nil {
			t.Fatal(err)
		}
		document, err := jsonschema.UnmarshalJSON(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("http://cyclonedx.org/schema/"+id, document); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}
