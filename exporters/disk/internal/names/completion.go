package names

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Limits on the number of rows that are read for keys and values in rows. The rows of the newest
// blocks are read.
const (
	maxLiveRows   = 1 << 14 // of a source that may change, for each list
	maxSourceRows = 1 << 16 // of any other source; the result is cached
	maxListRows   = 1 << 19 // for one list; the next list may read others
)

// Limits on the number and size of the cached texts of a source and topic.
const (
	maxTexts     = 20_000
	maxTextBytes = 2 << 20
)

// topic is what a list contains: the attribute keys of a tenant, or the values of one key.
type topic struct {
	tenant string
	keys   bool
	key    string // unless keys is set
}

// AttributeKeys implements tracestore.Catalog. If keys are stored in rows, it lists the keys of the
// newest spans. A list has at most maxListBytes bytes.
func (c *Catalog) AttributeKeys(ctx context.Context, tenant, prefix string, limit int) ([]string, error) {
	return c.complete(ctx, topic{tenant: tenant, keys: true}, prefix, limit)
}

// AttributeValues implements tracestore.Catalog. If there are more values than limit, or values are
// stored in rows, it lists the values of the newest spans. A list has at most maxListBytes bytes.
func (c *Catalog) AttributeValues(ctx context.Context, tenant, key, prefix string, limit int) ([]string, error) {
	if key == otlpdata.FlagsAttribute {
		return []string{}, nil
	}
	return c.complete(ctx, topic{tenant: tenant, key: key}, prefix, limit)
}

// complete lists texts of the newest sources until there are enough.
func (c *Catalog) complete(ctx context.Context, t topic, prefix string, limit int) ([]string, error) {
	s := c.store.Begin()
	defer s.Release()
	c.texts.keep(s.Sources)
	l := completion{session: s, texts: c.texts, topic: t, list: newList(s, prefix, limit), left: maxListRows}
	for _, src := range newestFirst(s) {
		if err := l.add(ctx, src); err != nil {
			return nil, err
		}
		if l.list.full() {
			break
		}
	}
	return l.list.sorted(), s.Damaged()
}

// newestFirst returns the numbers of all sources, ordered by their newest span.
func newestFirst(s *scan.Session) []int {
	newest := make([]uint64, len(s.Sources))
	for i, src := range s.Sources {
		_, _, newest[i] = src.Bounds()
	}
	out := allSources(s)
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(newest[b], newest[a]) })
	return out
}

// completion is a list in the making.
type completion struct {
	session *scan.Session
	texts   *textCache
	topic   topic
	list    *list
	left    int // number of rows that may still be read
}

// add adds the texts of a source.
func (c *completion) add(ctx context.Context, src int) error {
	if _, lasts := c.session.Sources[src].(source.Catalog); !lasts {
		_, err := c.read(ctx, src, c.list, maxLiveRows)
		return err
	}
	k := c.texts.get(c.session.Sources[src], c.topic)
	if k == nil {
		var err error
		if k, err = c.learn(ctx, src); err != nil {
			return err
		}
	}
	from, _ := slices.BinarySearch(k.texts, c.list.prefix)
	for _, text := range k.texts[from:] {
		if c.list.full() || !strings.HasPrefix(text, c.list.prefix) {
			break
		}
		c.list.add(text)
	}
	if !k.cut || c.list.full() {
		return nil
	}
	return newAttributeLister(c.session, src, c.topic, c.list).addFromTables(ctx)
}

// learn reads the texts of a source, and caches them if they could be read completely.
func (c *completion) learn(ctx context.Context, src int) (*knownTexts, error) {
	damaged := c.session.DamagedParts()
	l := &list{limit: maxTexts, max: maxTexts, bytesLeft: maxTextBytes, texts: make(map[string]struct{})}
	whole, err := c.read(ctx, src, l, maxSourceRows)
	if err != nil {
		return nil, err
	}
	k := &knownTexts{texts: l.sorted(), cut: l.full()}
	if whole && c.session.DamagedParts() == damaged {
		c.texts.put(c.session.Sources[src], c.topic, k)
	}
	return k, nil
}

// read adds the texts in the vocabulary and in at most the given number of rows of a source. whole
// is false if maxListRows allowed fewer rows.
func (c *completion) read(ctx context.Context, src int, l *list, maxRows int) (whole bool, _ error) {
	a := newAttributeLister(c.session, src, c.topic, l)
	if err := a.addFromTables(ctx); err != nil {
		return false, err
	}
	may := min(c.left, maxRows)
	n, err := a.addFromRows(ctx, may)
	c.left -= n
	return may == maxRows || n < may || a.scan.wanted[src] == nil, err
}
