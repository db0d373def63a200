package zipkin

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// readTags interprets the tags with a meaning in OTLP and leaves the others as attributes. It
// returns the group of the span.
func (t *translator) readTags() group {
	s := &t.span
	g := group{groupKey: groupKey{service: t.local.service}, nameAttribute: serviceName}
	if g.service == noServiceName {
		g.service = ""
	}
	var st v2Status
	rest := s.Attributes[:0]
	for i := range s.Attributes {
		kv := s.Attributes[i]
		if !t.special(&kv, &g, &st) {
			if t.opt.ParseStringTags {
				kv.Value = parsed(kv.Value)
			}
			rest = append(rest, kv)
		}
	}
	s.Attributes = rest
	if g.scope == "" && g.version != "" {
		s.Attributes = append(s.Attributes, text(scopeVersion, g.version))
		g.version = ""
	}
	s.Attributes = st.apply(s)
	return g
}

// noServiceName is the service name that exporters write for an OTLP resource without a service.
const noServiceName = "OTLPResourceNoServiceName"

// Tags with a special meaning.
const (
	serviceName       = "service.name"
	serviceNameSource = "otlp.service.name.source"
	scopeVersion      = "otel.scope.version"
	statusText        = "otel.status_description"
	linkPrefix        = "otlp.link."
)

// special interprets a tag. It reports whether the tag does not remain an attribute of the span.
func (t *translator) special(kv *otlpdata.KeyValue, g *group, st *v2Status) bool {
	value := kv.Value.Str()
	switch kv.Key {
	case "error":
		st.error = true
		return value == "true"
	case "span.kind":
		return t.kindTag(value)
	case "otel.status_code":
		return st.codeTag(value)
	case statusText:
		st.text = value
	case "w3c.tracestate":
		t.span.TraceState = value
	case "otel.scope.name":
		g.scope = value
	case scopeVersion:
		g.version = value
	case "otel.library.name":
		if g.scope == "" {
			g.scope = value
		}
	case "otel.library.version":
		if g.version == "" {
			g.version = value
		}
	case serviceNameSource:
		g.nameAttribute = cmp.Or(value, serviceName)
	case otlpdata.FlagsAttribute: // clients must not set it
	default:
		return t.linkTag(kv.Key, value) || t.resourceTag(kv)
	}
	return true
}

// kindTag sets the kind from a tag if the field for it is not set.
func (t *translator) kindTag(value string) bool {
	if t.span.Kind != otlpdata.KindUnspecified {
		return false
	}
	if value == "internal" {
		t.span.Kind = otlpdata.KindInternal
	} else {
		t.span.Kind = kindOf(value)
	}
	return t.span.Kind != otlpdata.KindUnspecified
}

// kindOf returns the OTLP kind for a name in v2 JSON, in any case.
func kindOf(name string) int32 {
	const maxLength = len("CONSUMER")
	if len(name) > maxLength {
		return otlpdata.KindUnspecified
	}
	switch strings.ToUpper(name) {
	case "CLIENT":
		return otlpdata.KindClient
	case "SERVER":
		return otlpdata.KindServer
	case "PRODUCER":
		return otlpdata.KindProducer
	case "CONSUMER":
		return otlpdata.KindConsumer
	}
	return otlpdata.KindUnspecified
}

// v2Status is the status in the tags of a span.
type v2Status struct {
	error bool // takes precedence over code
	coded bool
	code  int32
	text  string
}

func (st *v2Status) codeTag(value string) bool {
	const prefix = "STATUS_CODE_"
	name := value
	if len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
		name = name[len(prefix):]
	}
	switch {
	case strings.EqualFold(name, "OK"):
		st.code = otlpdata.StatusOK
	case strings.EqualFold(name, "ERROR"):
		st.code = otlpdata.StatusError
	case strings.EqualFold(name, "UNSET"):
		st.code = otlpdata.StatusUnset
	default:
		return false
	}
	st.coded = true
	return true
}

// apply sets the status and returns the attributes of the span. A description without a status
// remains an attribute.
func (st *v2Status) apply(s *otlpdata.Span) []otlpdata.KeyValue {
	s.StatusCode = st.code
	if st.error {
		s.StatusCode = otlpdata.StatusError
	}
	if st.coded || st.error {
		s.StatusMessage = st.text
	} else if st.text != "" {
		return append(s.Attributes, text(statusText, st.text))
	}
	return s.Attributes
}

// resourceTag moves a tag that describes the resource to the resource. Resource tags are kept until
// all spans are read, so their number is limited; further ones remain with their spans.
func (t *translator) resourceTag(kv *otlpdata.KeyValue) bool {
	if !isResourceKey(kv.Key) || len(t.resource) >= t.opt.Limits.Items {
		return false
	}
	t.resource = append(t.resource, *kv)
	return true
}

// isResourceKey reports whether the semantic conventions define a key for resources.
func isResourceKey(key string) bool {
	area, name, ok := strings.Cut(key, ".")
	if !ok {
		return false
	}
	switch area {
	case "host", "k8s", "container", "cloud", "process", "os", "device", "deployment", "webengine":
		return true
	case "telemetry":
		return strings.HasPrefix(name, "sdk.") || strings.HasPrefix(name, "auto.") || strings.HasPrefix(name, "distro.")
	case "service":
		return name == "name" || name == "namespace" || name == "version" || name == "instance.id"
	case "faas":
		return name == "name" || name == "id" || name == "version" || name == "instance" || name == "max_memory"
	case "aws":
		return strings.HasPrefix(name, "ecs.") || strings.HasPrefix(name, "eks.") || strings.HasPrefix(name, "log.")
	case "opencensus":
		return name == "starttime" || name == "exporterversion" || name == "resourcetype"
	}
	return false
}

// parsed converts the strings true and false to a boolean, and decimal numbers to a number.
// Integers must have their canonical form: identifiers with leading zeros are not converted.
func parsed(v otlpdata.Value) otlpdata.Value {
	s := v.Str()
	switch {
	case s == "true" || s == "false":
		return otlpdata.BoolValue(s == "true")
	case !isDecimal(s):
		return v
	}
	digits := strings.TrimPrefix(s, "-")
	if len(digits) > 1 && digits[0] == '0' && digits[1] != '.' {
		return v
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return otlpdata.IntValue(i)
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return otlpdata.DoubleValue(f)
	}
	return v
}

// isDecimal excludes number forms that only Go accepts, and avoids the cost of parser errors.
func isDecimal(s string) bool {
	const maxLength = 64
	if s == "" || len(s) > maxLength || s[len(s)-1] < '0' || s[len(s)-1] > '9' {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9', c == '.' && i > 0, c == '-', (c == 'e' || c == 'E' || c == '+') && i > 0:
		default:
			return false
		}
	}
	return true
}
