// Package resourcetags is the processor "resource_tags": it adds attributes to the resource of every span. Encoded spans are not decoded
// for it: a resource is written again with more in it, and everything else is copied.
package resourcetags

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Config configures the processor.
type Config struct {
	Tags map[string]string `yaml:"tags" doc:"Attributes to add to every resource, unless it has the same with the same value; what else it has stays."`
}

// Validate reports tags that say nothing.
func (c *Config) Validate() error {
	if len(c.Tags) == 0 {
		return pipeline.BadKey("tags", "must have at least one tag, for example tags: {environment: production}")
	}
	if _, empty := c.Tags[""]; empty {
		return pipeline.BadKey("tags", "a tag needs a name")
	}
	return nil
}

// Factory makes processors of type resource_tags.
func Factory() pipeline.Factory {
	return pipeline.Processor("resource_tags", func() Config { return Config{} }, newTagger).
		Doc("Adds attributes to the resource of every span.")
}

// tagger is the processor.
type tagger struct {
	next   pipeline.Consumer
	budget *pipeline.Budget
	tags   []tag
	size   int // of all of them as fields of a resource
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

// Consume passes on a batch with the tags.
func (t *tagger) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if b.Len() == 0 {
		return t.next.Consume(ctx, b)
	}
	segments, err := b.Segments()
	if err != nil {
		return pipeline.Permanent(err)
	}
	held, err := t.reserve(t.most(segments))
	if err != nil {
		return err
	}
	defer held.Release()
	// What is consumed here was within the limits of whoever received it.
	limits := otlpdata.Limits{Bytes: math.MaxInt, Spans: math.MaxInt, Items: math.MaxInt, Depth: math.MaxInt}
	out, err := otlpdata.FromOTLP(t.tag(segments), b.Meta(), limits)
	if err != nil {
		return pipeline.Permanent(fmt.Errorf("adding tags: %w", err))
	}
	return t.next.Consume(ctx, out)
}

// reserve takes memory of the budget. What can never fit is too large, not to be sent again.
func (t *tagger) reserve(size int64) (*pipeline.Reservation, error) {
	if limit := t.budget.Limit(); limit > 0 && size > limit {
		return nil, &otlpdata.LimitError{Limit: "bytes of memory for spans with their tags", Max: int(limit), TooLarge: true}
	}
	return t.budget.Reserve(size)
}

// tag returns one request of all segments.
func (t *tagger) tag(segments [][]byte) []byte {
	out := make([]byte, 0, t.most(segments))
	var resource []byte // scratch
	for _, s := range segments {
		for f := range fields(s) {
			if !hasSpans(f) {
				out = append(out, f.raw...)
				continue
			}
			var replaced int
			resource, replaced = t.resource(resource[:0], f.content)
			size := protowire.SizeTag(fieldResource) + protowire.SizeBytes(len(resource)) + len(f.content) - replaced
			out = protowire.AppendTag(out, fieldResourceSpans, protowire.BytesType)
			out = protowire.AppendVarint(out, uint64(size))
			out = appendBytes(out, fieldResource, resource)
			for below := range fields(f.content) {
				if below.num != fieldResource {
					out = append(out, below.raw...)
				}
			}
		}
	}
	return out
}

// most is a bound of the size of the spans with the tags.
func (t *tagger) most(segments [][]byte) int64 {
	// headRoom bounds what the lengths of a ResourceSpans and of its resource take, with the tags of the fields.
	const headRoom = 2 * (1 + 5)
	size := 0
	for _, s := range segments {
		size += len(s)
		for f := range fields(s) {
			if hasSpans(f) {
				size += t.size + headRoom
			}
		}
	}
	return int64(size)
}

// resource appends the resource of a ResourceSpans, with the tags that it lacks, and returns how many bytes that replaces. A resource in
// several pieces is what they are together.
func (t *tagger) resource(dst, resourceSpans []byte) (resource []byte, replaced int) {
	for f := range fields(resourceSpans) {
		if f.num == fieldResource {
			dst = append(dst, f.content...)
			replaced += len(f.raw)
		}
	}
	own := dst
	for _, tag := range t.tags {
		if !tag.in(own) {
			dst = appendBytes(dst, fieldAttributes, tag.encoded)
		}
	}
	return dst, replaced
}
