package uijson

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// adjust corrects and orders the spans of a trace for people to look at. Duplicates go before ids are made unique, which would make two
// different spans of them.
func adjust(spans []span) []span {
	for i := range spans {
		s := &spans[i]
		sortTags(s.tags)
		for j := range s.logs {
			sortFields(s.logs[j].fields)
		}
	}
	spans = deduplicate(spans)
	uniqueServerIDs(spans)
	for i := range spans {
		removeEmptyLinks(&spans[i])
	}
	return spans
}

// uniqueServerIDs gives a server span that shares its id with a client span, as Zipkin's do, an id of its own: the smallest that the trace
// does not use. Its parent is then the client span, and the children of the shared id are its children. The id zero is no id that
// could be shared.
func uniqueServerIDs(spans []span) {
	clients := make(map[otlpdata.SpanID]bool)
	for i := range spans {
		if s := &spans[i]; s.kind == otlpdata.KindClient && !s.id.IsZero() {
			clients[s.id] = true
		}
	}
	var free idSource
	renamed := make(map[otlpdata.SpanID]otlpdata.SpanID) // shared id -> the server's own
	servers := make(map[otlpdata.SpanID]bool)            // the servers' own ids
	for i := range spans {
		s := &spans[i]
		if s.kind != otlpdata.KindServer || !clients[s.id] {
			continue
		}
		if free.used == nil {
			free.used = usedIDs(spans)
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

func usedIDs(spans []span) map[otlpdata.SpanID]bool {
	used := make(map[otlpdata.SpanID]bool, len(spans))
	for i := range spans {
		used[spans[i].id] = true
	}
	return used
}

// idSource yields ids that are not used, counting from 1.
type idSource struct {
	used map[otlpdata.SpanID]bool
	last uint64
}

func (f *idSource) next() otlpdata.SpanID {
	for {
		f.last++
		var id otlpdata.SpanID
		binary.BigEndian.PutUint64(id[:], f.last)
		if !f.used[id] {
			return id
		}
	}
}

func sortTags(tags []otlpdata.KeyValue) {
	slices.SortStableFunc(tags, func(a, b otlpdata.KeyValue) int { return cmp.Compare(a.Key, b.Key) })
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

// deduplicate drops a span that says the same as one before it, down to the nanosecond. Only spans with the same id can.
func deduplicate(spans []span) []span {
	count := make(map[otlpdata.SpanID]int, len(spans))
	for i := range spans {
		count[spans[i].id]++
	}
	if len(count) == len(spans) {
		return spans
	}
	seen := make(map[string]bool)
	var key []byte
	return slices.DeleteFunc(spans, func(s span) bool {
		if count[s.id] == 1 {
			return false
		}
		key = appendIdentity(key[:0], &s)
		if seen[string(key)] {
			return true
		}
		seen[string(key)] = true
		return false
	})
}

// appendIdentity appends everything that is known of a span: its JSON, and the times that the JSON rounds.
func appendIdentity(dst []byte, s *span) []byte {
	dst = appendSpan(dst, s)
	dst = binary.BigEndian.AppendUint64(dst, s.start)
	dst = binary.BigEndian.AppendUint64(dst, s.duration)
	for _, e := range s.logs {
		dst = binary.BigEndian.AppendUint64(dst, e.time)
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
