// Package image writes the container image of the program without a container engine. It is the
// image that deploy/docker/Dockerfile describes, for several architectures.
package image

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// refName is the annotation with the tag of an image in an OCI layout.
const refName = "org.opencontainers.image.ref.name"

// Options describe an image.
type Options struct {
	Dir      string            // root of the repository
	Version  string            // label and tag
	Programs map[string]string // path of the program for each architecture, such as amd64
	Licenses []string          // files beside the program, in /usr/share/doc/tracing
	Out      string            // file to write
}

// Write writes an archive of an OCI image layout with one image for each program. Equal options and
// programs result in equal bytes.
func Write(ctx context.Context, o Options) (err error) {
	if len(o.Programs) == 0 {
		return fmt.Errorf("image %s: no program given; give one for each architecture", o.Out)
	}
	index, err := build(ctx, o)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(o.Out), "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: o.Version})); err != nil {
		return err
	}
	return archive(dir, o.Out)
}

// build returns the index of the images of all architectures.
func build(ctx context.Context, o Options) (v1.ImageIndex, error) {
	base, err := rootfsLayer(filepath.Join(o.Dir, "deploy", "docker", "rootfs"))
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range slices.Sorted(maps.Keys(o.Programs)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		top, err := programLayer(o.Programs[arch], o.Licenses)
		if err != nil {
			return nil, err
		}
		one, err := assemble(config(arch, o.Version), base, top)
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        one,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: portable, Architecture: arch}},
		})
	}
	return index, nil
}

// assemble returns an image of OCI media types. It has no time of creation, so that it depends on
// nothing but its content.
func assemble(cfg *v1.ConfigFile, layers ...v1.Layer) (v1.Image, error) {
	image, err := mutate.ConfigFile(mutate.MediaType(empty.Image, types.OCIManifestSchema1), cfg)
	if err != nil {
		return nil, err
	}
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	for _, l := range layers {
		addendum := mutate.Addendum{Layer: l, MediaType: types.OCILayer, History: v1.History{CreatedBy: "tracing/tools/internal/image"}}
		if image, err = mutate.Append(image, addendum); err != nil {
			return nil, err
		}
	}
	return image, nil
}
