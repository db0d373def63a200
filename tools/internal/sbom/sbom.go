// Package sbom writes the software bill of materials of a program as CycloneDX JSON: what is linked
// into it, according to the build information in the program.
package sbom

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"

	"github.com/tracing-backend/tracing/tools/internal/licenses"
)

// specVersion is the version of CycloneDX. Few readers support later ones.
const specVersion = cdx.SpecVersion1_6

// Options describe a program.
type Options struct {
	Program string          // path
	Name    string          // of its file in the release
	Version string          // of the release
	Time    time.Time       // of the release
	Modules []licenses.Item // licenses of the modules that are linked into it
	UI      []licenses.Item // packages in its web UI
}

// Write writes the bill of materials of a program. The same program and options give the same
// bytes.
func Write(w io.Writer, o Options) error {
	program, err := os.ReadFile(o.Program)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(o.Program)
	if err != nil {
		return fmt.Errorf("%s: build information: %w", o.Program, err)
	}
	components, err := o.components(info)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Program, err)
	}
	sum := sha256.Sum256(program)
	bom := cdx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceOID, sum[:]).String()
	bom.Metadata = &cdx.Metadata{
		Timestamp: o.Time.UTC().Format(time.RFC3339),
		Component: o.program(info, hex.EncodeToString(sum[:])),
	}
	bom.Components = &components
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom.Dependencies = &[]cdx.Dependency{{Ref: bom.Metadata.Component.BOMRef, Dependencies: &refs}}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, specVersion)
}

// program returns the program as a component, with its target and toolchain.
func (o Options) program(info *debug.BuildInfo, sum string) *cdx.Component {
	properties := []cdx.Property{{Name: "go:version", Value: info.GoVersion}}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "GOAMD64", "GOARM64", "CGO_ENABLED":
			properties = append(properties, cdx.Property{Name: "go:" + s.Key, Value: s.Value})
		}
	}
	return &cdx.Component{
		BOMRef: o.Name, Type: cdx.ComponentTypeApplication, Name: "tracing", Version: o.Version,
		PackageURL: golangURL(info.Main.Path, "v"+o.Version),
		Licenses:   spdx([]string{"Apache-2.0"}),
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}},
		Properties: &properties,
	}
}

// components returns the standard library, the modules, and the packages of the web UI.
func (o Options) components(info *debug.BuildInfo) ([]cdx.Component, error) {
	ids := map[string][]string{}
	for _, i := range o.Modules {
		ids[i.Name] = i.IDs
	}
	standard := library("std", strings.TrimPrefix(info.GoVersion, "go"), ids["Go"])
	standard.PackageURL = golangURL("std", standard.Version)
	standard.BOMRef = standard.PackageURL
	components := []cdx.Component{standard}
	for _, m := range info.Deps {
		c, err := module(m, ids)
		if err != nil {
			return nil, err
		}
		components = append(components, c)
	}
	for _, i := range o.UI {
		c := library(i.Name, i.Version, i.IDs)
		c.PackageURL = "pkg:npm/" + strings.Replace(i.Name, "@", "%40", 1) + "@" + i.Version
		c.BOMRef = c.PackageURL
		components = append(components, c)
	}
	return components, nil
}

// module returns a Go module as a component. Its hash comes from go.sum, in hexadecimal.
func module(m *debug.Module, ids map[string][]string) (cdx.Component, error) {
	name := m.Path
	if m.Replace != nil {
		m = m.Replace
	}
	if len(ids[name]) == 0 {
		return cdx.Component{}, fmt.Errorf("module %s: no license found", name)
	}
	c := library(m.Path, m.Version, ids[name])
	c.PackageURL = golangURL(m.Path, m.Version)
	c.BOMRef = c.PackageURL
	encoded, ok := strings.CutPrefix(m.Sum, "h1:")
	if sum, err := base64.StdEncoding.DecodeString(encoded); !ok || err != nil {
		return cdx.Component{}, fmt.Errorf("module %s: hash %q is not known", m.Path, m.Sum)
	} else {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return c, nil
}

func library(name, version string, ids []string) cdx.Component {
	return cdx.Component{
		Type: cdx.ComponentTypeLibrary, Name: name, Version: version, Scope: cdx.ScopeRequired, Licenses: spdx(ids),
	}
}

// golangURL returns the package URL of a module.
func golangURL(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// spdx returns licenses that all apply.
func spdx(ids []string) *cdx.Licenses {
	var l cdx.Licenses
	for _, id := range ids {
		l = append(l, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &l
}
