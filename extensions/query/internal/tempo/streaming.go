package tempo

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/grpcapi"
	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/internal/wire/streaming"
)

// Streaming is the gRPC form of the API, in which a search sends traces while it runs. A request
// means the same as the HTTP request with the same parameters. Clients accept messages of up to 4
// MiB; the messages here have at most maxMessage bytes.
type Streaming struct {
	streaming.UnimplementedStreamingQuerierServer
	backend *core.Backend
	calls   grpcapi.Calls
}

// maxMessage is the maximum size of a message in bytes.
const maxMessage = 1 << 20

// RegisterStreaming registers the service under its own name and the one that clients use.
func RegisterStreaming(r grpc.ServiceRegistrar, b *core.Backend) {
	wire.Register(r, &streaming.StreamingQuerier_ServiceDesc, &Streaming{backend: b, calls: grpcapi.NewCalls(b)})
}

// Beginnings of the texts of store errors.
const (
	failedSearch = "failed to search"
	failedTags   = "failed to list tags"
	failedValues = "failed to list values"
)

func invalidArgument(err error) error { return status.Error(codes.InvalidArgument, err.Error()) }

// searchValues returns the request as parameters of the HTTP API.
func searchValues(r *streaming.SearchRequest) url.Values {
	v := rangeValues(r.GetStart(), r.GetEnd())
	set := func(name string, n uint32, unit string) {
		if n > 0 {
			v.Set(name, strconv.FormatUint(uint64(n), 10)+unit)
		}
	}
	set("limit", r.GetLimit(), "")
	set("spss", r.GetSpansPerSpanSet(), "")
	set("minDuration", r.GetMinDurationMs(), "ms")
	set("maxDuration", r.GetMaxDurationMs(), "ms")
	v.Set("q", r.GetQuery())
	var tags []string
	for key, value := range r.GetTags() {
		tags = append(tags, key+"="+strconv.Quote(value))
	}
	v.Set("tags", strings.Join(tags, " "))
	return v
}

func rangeValues(start, end uint32) url.Values {
	return url.Values{"start": {strconv.FormatUint(uint64(start), 10)}, "end": {strconv.FormatUint(uint64(end), 10)}}
}

// Search sends the traces that match.
func (s *Streaming) Search(r *streaming.SearchRequest, stream grpc.ServerStreamingServer[streaming.SearchResponse]) error {
	q, err := parseSearch(s.backend.Language(stream.Context()), searchValues(r), s.backend.Now(), s.backend.Limits().Traces)
	if err != nil {
		return invalidArgument(err)
	}
	return s.calls.Run(stream.Context(), core.OpFindTraces, failedSearch, func(slot *core.Slot) (int, error) {
		out := parts{send: grpcapi.SendTo(stream)}
		defer out.stop()
		outcome, err := q.find(slot, out.add)
		incomplete := core.IncompleteMessage(outcome.Reasons)
		if err != nil && core.CanEnd(out.traces, err) {
			_, text := s.backend.HTTPError(http.Header{}, err)
			incomplete, err = core.IncompleteText+text, nil
		}
		if err != nil {
			return out.traces, err
		}
		grpcapi.Warn(slot.Context(), incomplete)
		return out.traces, out.finish(outcome.Scanned)
	})
}

func tagsValues(r *streaming.SearchTagsRequest) url.Values {
	v := rangeValues(r.GetStart(), r.GetEnd())
	v.Set("scope", r.GetScope())
	v.Set("limit", strconv.FormatUint(uint64(r.GetMaxTagsPerScope()), 10))
	return v
}

// tags runs answer with the names of tags by scope. answer returns whether there are more.
func (s *Streaming) tags(
	r *streaming.SearchTagsRequest, stream grpc.ServerStream, answer func(q *tagsRequest, scopes map[string][]string) (more bool, err error),
) error {
	q, err := parseTags(tagsValues(r))
	if err != nil {
		return invalidArgument(err)
	}
	return s.calls.Run(stream.Context(), core.OpGetTags, failedTags, func(slot *core.Slot) (n int, err error) {
		scopes, incomplete, err := tagScopes(slot, q)
		if err != nil {
			return 0, err
		}
		for _, names := range scopes {
			n += len(names)
		}
		more, err := answer(&q, scopes)
		if more {
			incomplete.Add(core.NamesLeftOut(q.limit))
		}
		grpcapi.Warn(slot.Context(), core.IncompleteMessage(incomplete))
		return n, core.Undelivered(err)
	})
}

// SearchTags sends names of tags as one list.
func (s *Streaming) SearchTags(r *streaming.SearchTagsRequest, stream grpc.ServerStreamingServer[streaming.SearchTagsResponse]) error {
	return s.tags(r, stream, func(q *tagsRequest, scopes map[string][]string) (bool, error) {
		names, more := q.merge(scopes)
		return more, inParts(names, sizeOfText, func(part []string) error {
			return stream.Send(&streaming.SearchTagsResponse{TagNames: validTexts(part), Metrics: &streaming.MetadataMetrics{}})
		})
	})
}

// SearchTagsV2 sends names of tags by scope.
func (s *Streaming) SearchTagsV2(r *streaming.SearchTagsRequest, stream grpc.ServerStreamingServer[streaming.SearchTagsV2Response]) error {
	return s.tags(r, stream, func(q *tagsRequest, scopes map[string][]string) (bool, error) {
		lists, more := q.order(scopes)
		var all []scopedTags // one tag each
		for _, l := range lists {
			for i := range l.tags {
				all = append(all, scopedTags{l.scope, l.tags[i : i+1]})
			}
		}
		size := func(t scopedTags) int { return sizeOfText(t.scope) + sizeOfText(t.tags[0]) }
		return more, inParts(all, size, func(part []scopedTags) error {
			m := &streaming.SearchTagsV2Response{Metrics: &streaming.MetadataMetrics{}}
			for _, t := range part {
				n := len(m.Scopes)
				if n == 0 || m.Scopes[n-1].Name != t.scope {
					m.Scopes, n = append(m.Scopes, &streaming.SearchTagsV2Scope{Name: t.scope}), n+1
				}
				m.Scopes[n-1].Tags = append(m.Scopes[n-1].Tags, validText(t.tags[0]))
			}
			return stream.Send(m)
		})
	})
}

func valuesValues(r *streaming.SearchTagValuesRequest) url.Values {
	v := rangeValues(r.GetStart(), r.GetEnd())
	v.Set("q", r.GetQuery())
	v.Set("limit", strconv.FormatUint(uint64(r.GetMaxTagValues()), 10))
	return v
}

// SearchTagValues sends the values of a tag, which is a key.
func (s *Streaming) SearchTagValues(
	r *streaming.SearchTagValuesRequest, stream grpc.ServerStreamingServer[streaming.SearchTagValuesResponse],
) error {
	q, err := parseValues(s.backend.Language(stream.Context()), r.GetTagName(), valuesValues(r), fieldOfTag)
	if err != nil {
		return invalidArgument(err)
	}
	return s.values(stream, &q, func(_ *core.Slot, texts []string) error {
		return core.Undelivered(inParts(texts, sizeOfText, func(part []string) error {
			return stream.Send(&streaming.SearchTagValuesResponse{TagValues: validTexts(part), Metrics: &streaming.MetadataMetrics{}})
		}))
	})
}

// SearchTagValuesV2 sends the values of a tag, which is a field of the search language, with their
// types.
func (s *Streaming) SearchTagValuesV2(
	r *streaming.SearchTagValuesRequest, stream grpc.ServerStreamingServer[streaming.SearchTagValuesV2Response],
) error {
	q, err := parseValues(s.backend.Language(stream.Context()), r.GetTagName(), valuesValues(r), fieldOfSearch)
	if err != nil {
		return invalidArgument(err)
	}
	return s.values(stream, &q, func(slot *core.Slot, texts []string) error {
		numeric, err := hasNumbers(slot, q.field, texts)
		if err != nil {
			return err
		}
		return core.Undelivered(inParts(texts, sizeOfTypedText, func(part []string) error {
			m := &streaming.SearchTagValuesV2Response{Metrics: &streaming.MetadataMetrics{}}
			for _, text := range part {
				m.TagValues = append(m.TagValues, &streaming.TagValue{Type: typeOf(q.field, text, numeric), Value: validText(text)})
			}
			return stream.Send(m)
		}))
	})
}

func (s *Streaming) values(stream grpc.ServerStream, q *valuesRequest, answer func(*core.Slot, []string) error) error {
	return s.calls.Run(stream.Context(), core.OpGetTagValues, failedValues, func(slot *core.Slot) (int, error) {
		texts, incomplete, err := q.list(slot)
		if err != nil {
			return 0, err
		}
		grpcapi.Warn(slot.Context(), core.IncompleteMessage(incomplete))
		return len(texts), answer(slot, texts)
	})
}

func validTexts(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = validText(text)
	}
	return out
}

// sizeOfText returns the maximum size of a text in a message: in valid UTF-8, an invalid byte takes
// three, and the tag and the length take at most four.
func sizeOfText(text string) int { return len(validText(text)) + 4 }

func sizeOfTypedText(text string) int {
	const tagsAndType = 16
	return sizeOfText(text) + tagsAndType
}

// inParts sends a list in parts of at most maxMessage bytes, and at least one part.
func inParts[T any](list []T, size func(T) int, send func([]T) error) error {
	const rest = 64 // of the message
	from, bytes := 0, rest
	for i, item := range list {
		n := size(item)
		if i > from && bytes+n > maxMessage {
			if err := send(list[from:i]); err != nil {
				return err
			}
			from, bytes = i, rest
		}
		bytes += n
	}
	return send(list[from:])
}
