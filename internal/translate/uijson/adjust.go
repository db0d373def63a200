package uijson

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// adjustTags corrects and orders the tags of a span or a process.
func adjustTags(tags []otlpdata.KeyValue) {
	for i := range tags {
		if kv := &tags[i]; kv.Key == "ip" || kv.Key == "peer.ipv4" {
			kv.Value = dotted(kv.Value)
		}
	}
	sortTags(tags)
}

// dotted returns an IPv4 address that was sent as a number in its usual form.
func dotted(v otlpdata.Value) otlpdata.Value {
	var n uint32
	switch v.Kind() {
	case otlpdata.ValueInt:
		n = uint32(v.Int())
	case otlpdata.ValueDouble:
		n = uint32(int64(v.Double()))
	default:
		return v
	}
	return otlpdata.StringValue(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).String())
}

// moveLibraryTags moves the tags that say which library made a span, and that some libraries give to every span, to its process, and
// returns the others and the index of that. A tag that says something else than the process stays, with a warning.
func (c *collector) moveLibraryTags(tags []otlpdata.KeyValue, warnings *[]string) ([]otlpdata.KeyValue, int) {
	if !slices.ContainsFunc(tags, isLibraryTag) {
		return tags, c.processIndex()
	}
	own := slices.Clone(c.processTags)
	tags = slices.DeleteFunc(tags, func(kv otlpdata.KeyValue) bool {
		if !isLibraryTag(kv) {
			return false
		}
		there, ok := otlpdata.Get(own, kv.Key)
		switch {
		case !ok:
			own = append(own, kv)
		case there != kv.Value:
			*warnings = append(*warnings, "conflicting values between Span and Resource for attribute "+kv.Key)
			return false
		}
		return true
	})
	sortTags(own)
	return tags, c.listProcess(own)
}

func isLibraryTag(kv otlpdata.KeyValue) bool {
	if !strings.HasPrefix(kv.Key, "telemetry.") {
		return false
	}
	switch kv.Key {
	case "telemetry.sdk.language", "telemetry.sdk.name", "telemetry.sdk.version", "telemetry.distro.name", "telemetry.distro.version":
		return true
	}
	return false
}

// adjust corrects what takes all spans of a trace to see. Duplicates go before ids are made unique, which would make two different spans
// of them.
func (c *collector) adjust() {
	if len(c.count) < len(c.spans) {
		c.spans = deduplicate(c.spans, c.count)
		uniqueServerIDs(c.spans, c.count)
	}
	for i := range c.spans {
		removeEmptyLinks(&c.spans[i])
	}
}

// uniqueServerIDs gives a server span that shares its id with a client span, as Zipkin's do, an id of its own: the smallest that the trace
// does not use. Its parent is then the client span, and the children of the shared id are its children. The id zero is no id that
// could be shared.
func uniqueServerIDs(spans []span, used map[otlpdata.SpanID]int) {
	clients := make(map[otlpdata.SpanID]bool)
	for i := range spans {
		if s := &spans[i]; s.kind == otlpdata.KindClient && !s.id.IsZero() {
			clients[s.id] = true
		}
	}
	free := idSource{used: used}
	renamed := make(map[otlpdata.SpanID]otlpdata.SpanID) // shared id -> the server's own
	servers := make(map[otlpdata.SpanID]bool)            // the servers' own ids
	for i := range spans {
		s := &spans[i]
		if s.kind != otlpdata.KindServer || !clients[s.id] {
			continue
		}
		id := free.next()
		renamed[s.id], servers[id] = id, true
		s.parent, s.id = s.id, id
	}
	for i := range spans {
		s := &spans[i]
		if id, ok := renamed[s.parent]; ok && !servers[s.id] {
			s.parent = id
		}
	}
}

// idSource yields ids that are not used, counting from 1.
type idSource struct {
	used map[otlpdata.SpanID]int
	last uint64
}

func (f *idSource) next() otlpdata.SpanID {
	for {
		f.last++
		var id otlpdata.SpanID
		binary.BigEndian.PutUint64(id[:], f.last)
		if f.used[id] == 0 {
			return id
		}
	}
}

// sortTags sorts tags by key; those with the same key stay in order. Spans have few tags, many of them in order already: they are sorted
// by inserting one index after the other, and moved once.
func sortTags(tags []otlpdata.KeyValue) {
	const few = 32
	if len(tags) > few {
		slices.SortStableFunc(tags, func(a, b otlpdata.KeyValue) int { return cmp.Compare(a.Key, b.Key) })
		return
	}
	var order [few]uint8
	sorted := true
	for i := range tags {
		to := i
		for ; to > 0 && tags[order[to-1]].Key > tags[i].Key; to-- {
			order[to] = order[to-1]
		}
		order[to] = uint8(i)
		sorted = sorted && to == i
	}
	if sorted {
		return
	}
	var before [few]otlpdata.KeyValue
	copy(before[:], tags)
	for i := range tags {
		tags[i] = before[order[i]]
	}
}

// sortFields sorts the fields of a log by key, behind the one that says what happened.
func sortFields(fields []otlpdata.KeyValue) {
	isEvent := func(kv otlpdata.KeyValue) bool { return kv.Key == "event" && kv.Value.Kind() == otlpdata.ValueString }
	if i := slices.IndexFunc(fields, isEvent); i >= 0 {
		e := fields[i]
		copy(fields[1:i+1], fields[:i])
		fields[0] = e
		fields = fields[1:]
	}
	sortTags(fields)
}

// deduplicate drops a span that says the same as one before it, down to the nanosecond. Only spans with the same id can; count says how
// many there are.
func deduplicate(spans []span, count map[otlpdata.SpanID]int) []span {
	seen := make(map[[sha256.Size]byte]bool)
	var scratch []byte
	return slices.DeleteFunc(spans, func(s span) bool {
		if count[s.id] == 1 {
			return false
		}
		scratch = appendIdentity(scratch[:0], &s)
		key := sha256.Sum256(scratch)
		again := seen[key]
		seen[key] = true
		return again
	})
}

// appendIdentity appends everything that is known of a span: its JSON, and the times that the JSON rounds.
func appendIdentity(dst []byte, s *span) []byte {
	dst = appendSpan(dst, s)
	dst = binary.BigEndian.AppendUint64(dst, s.start)
	dst = binary.BigEndian.AppendUint64(dst, s.duration)
	for _, t := range s.eventTimes {
		dst = binary.BigEndian.AppendUint64(dst, t)
	}
	return dst
}

// removeEmptyLinks removes the links that lead to no trace.
func removeEmptyLinks(s *span) {
	s.links = slices.DeleteFunc(s.links, func(l link) bool {
		if l.traceID.IsZero() {
			s.warnings = append(s.warnings, "Invalid span link removed")
		}
		return l.traceID.IsZero()
	})
}
