// Package resourcetags implements the `resource_tags` processor. It adds attributes to the resource
// of every span. It rewrites encoded resources and copies all other fields without decoding them.
package resourcetags

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// Config configures the processor.
type Config struct {
	Tags map[string]string `yaml:"tags" doc:"Attributes to add to every resource, unless it already has them with the same value. Other attributes are unchanged."`
}

// Validate reports missing tags and empty names.
func (c *Config) Validate() error {
	if len(c.Tags) == 0 {
		return pipeline.BadKey("tags", "must have at least one tag, for example tags: {environment: production}")
	}
	if _, empty := c.Tags[""]; empty {
		return pipeline.BadKey("tags", "must not contain an empty name")
	}
	return nil
}

// Factory returns the factory of processors of type resource_tags.
func Factory() pipeline.Factory {
	return pipeline.Processor("resource_tags", func() Config { return Config{} }, newTagger).
		Doc("Adds attributes to the resource of every span.")
}

// tagger implements the processor.
type tagger struct {
	next   pipeline.Consumer
	budget *pipeline.Budget
	tags   []tag
	size   int // of all tags as fields of a resource, in bytes
}

func newTagger(set pipeline.Settings, c Config, next pipeline.Consumer) (*tagger, error) {
	t := &tagger{next: next, budget: set.Budget}
	for _, key := range slices.Sorted(maps.Keys(c.Tags)) {
		tag := newTag(key, c.Tags[key])
		t.tags = append(t.tags, tag)
		t.size += protowire.SizeTag(fieldAttributes) + protowire.SizeBytes(len(tag.encoded))
	}
	return t, nil
}

// Consume adds the tags to a batch and passes it on.
func (t *tagger) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if b.Len() == 0 {
		return t.next.Consume(ctx, b)
	}
	chunks, err := b.Chunks()
	if err != nil {
		return pipeline.Permanent(err)
	}
	reservation, err := t.reserve(t.maxSize(chunks))
	if err != nil {
		return err
	}
	defer reservation.Release()
	// The receiver has applied the limits.
	limits := otlpdata.Limits{Bytes: math.MaxInt, Spans: math.MaxInt, Items: math.MaxInt, Depth: math.MaxInt}
	out, err := otlpdata.FromOTLP(t.addTags(chunks), b.Meta(), limits)
	if err != nil {
		return pipeline.Permanent(fmt.Errorf("adding tags: %w", err))
	}
	return t.next.Consume(ctx, out)
}

// reserve reserves memory. It returns a limit error (too large, do not retry) if size exceeds the
// whole budget.
func (t *tagger) reserve(size int64) (*pipeline.Reservation, error) {
	if limit := t.budget.Limit(); limit > 0 && size > limit {
		return nil, &otlpdata.LimitError{Limit: "bytes of memory for spans with added tags", Max: int(limit), TooLarge: true}
	}
	return t.budget.Reserve(size)
}

// addTags joins the chunks to one request with the tags.
func (t *tagger) addTags(chunks iter.Seq[[]byte]) []byte {
	out := make([]byte, 0, t.maxSize(chunks))
	var resource []byte // scratch
	for chunk := range chunks {
		for f := range protoenc.Fields(chunk) {
			if !isResourceSpans(f) {
				out = append(out, f.Raw...)
				continue
			}
			var replaced int
			resource, replaced = t.appendResource(resource[:0], f.Content)
			size := protowire.SizeTag(fieldResource) + protowire.SizeBytes(len(resource)) + len(f.Content) - replaced
			out = protowire.AppendTag(out, fieldResourceSpans, protowire.BytesType)
			out = protowire.AppendVarint(out, uint64(size))
			out = appendBytes(out, fieldResource, resource)
			for inner := range protoenc.Fields(f.Content) {
				if inner.Num != fieldResource {
					out = append(out, inner.Raw...)
				}
			}
		}
	}
	return out
}

// maxSize returns an upper bound for the size of the chunks with the tags.
func (t *tagger) maxSize(chunks iter.Seq[[]byte]) int64 {
	// headerSize is the maximum size of the field tags and lengths of a ResourceSpans and its
	// resource.
	const headerSize = 2 * (1 + 5)
	size := 0
	for chunk := range chunks {
		size += len(chunk)
		for f := range protoenc.Fields(chunk) {
			if isResourceSpans(f) {
				size += t.size + headerSize
			}
		}
	}
	return int64(size)
}

// appendResource appends the resource of a ResourceSpans and the missing tags. It also returns the
// size of the original fields in bytes. If a ResourceSpans has several resource fields, they are
// merged.
func (t *tagger) appendResource(dst, resourceSpans []byte) (resource []byte, replaced int) {
	for f := range protoenc.Fields(resourceSpans) {
		if f.Num == fieldResource {
			dst = append(dst, f.Content...)
			replaced += len(f.Raw)
		}
	}
	original := dst
	for _, tag := range t.tags {
		if !tag.isIn(original) {
			dst = appendBytes(dst, fieldAttributes, tag.encoded)
		}
	}
	return dst, replaced
}
