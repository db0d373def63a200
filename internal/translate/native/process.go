package native

import (
	"strings"
	"unsafe"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// process is a process of the native model.
type process struct {
	service string
	tags    []otlpdata.KeyValue
}

func (p *process) reset() { p.service, p.tags = "", p.tags[:0] }

// beginResource begins a resource with the content of t.process.
func (t *translator) beginResource() {
	p := &t.process
	t.renameTags()
	if p.service != "" && p.service != noServiceName {
		p.tags = append(p.tags, otlpdata.KeyValue{})
		copy(p.tags[1:], p.tags)
		p.tags[0] = otlpdata.KeyValue{Key: serviceNameAttribute, Value: otlpdata.StringValue(p.service)}
	}
	t.out.Resource(p.tags)
	t.inScope = false
}

// renameTags gives tags of client libraries their OTLP names, unless an attribute of that name
// exists.
func (t *translator) renameTags() {
	const hostName, exporterVersion = "host.name", "opencensus.exporterversion"
	var host, version *otlpdata.KeyValue
	for i := range t.process.tags {
		kv := &t.process.tags[i]
		switch kv.Key {
		case "hostname":
			host = kv
		case "jaeger.version", "tracing.version":
			version = kv
		}
	}
	if host != nil && !has(t.process.tags, hostName) {
		host.Key = hostName
	}
	if version != nil && version.Value.Kind() == otlpdata.ValueString && !has(t.process.tags, exporterVersion) {
		from := len(t.text)
		t.text = append(append(t.text, "Jaeger-"...), version.Value.Str()...)
		*version = otlpdata.KeyValue{Key: exporterVersion, Value: otlpdata.StringValue(unsafeString(t.text[from:]))}
	}
}

func has(kvs []otlpdata.KeyValue, key string) bool {
	_, ok := otlpdata.Get(kvs, key)
	return ok
}

// clientID returns the client's id, a copy.
func (p *process) clientID() string {
	id, _ := otlpdata.Get(p.tags, "client-uuid")
	return strings.Clone(id.Str())
}

// unsafeString returns b as a string without copying it.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
