package kafka

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/internal/translate/zipkin"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Decoder builds batches from the values of records in one encoding. It is safe for concurrent use.
type Decoder struct {
	// Format is the wire format for [otlpdata.Meta].
	Format  string
	aliases bool // whether batches consist of the values
	limits  otlpdata.Limits
	// memory returns the maximum memory of decode in bytes, without the values and without the
	// bytes passed to grow.
	memory func(d *Decoder, values [][]byte) int64
	decode func(d *Decoder, values [][]byte, m otlpdata.Meta, grow func(int64) error) (*otlpdata.Batch, error)
}

// zipkinThrift is an encoding that is only read: a list of spans in the binary Thrift protocol, as
// written by Zipkin clients and Jaeger.
const zipkinThrift = "zipkin_thrift"

// decoders has the encodings that can be read, also under their names in other programs.
var decoders = map[string]Decoder{
	OTLPProto:    {Format: "otlp", aliases: true, memory: noMemory, decode: decodeOTLPProto},
	OTLPJSON:     {Format: "otlp", memory: each(otlpJSONMemory), decode: decodeEach(otlpJSON)},
	JaegerProto:  {Format: "tracing", memory: nativeMemory, decode: decodeNativeProto},
	JaegerJSON:   {Format: "tracing", memory: nativeJSONMemory, decode: decodeNativeJSON},
	ZipkinProto:  {Format: "zipkin", memory: each(zipkin.V2ProtoMemory), decode: decodeEach(translateZipkin(zipkin.FromV2Proto))},
	ZipkinJSON:   {Format: "zipkin", memory: each(zipkin.V2JSONMemory), decode: decodeEach(translateZipkin(zipkin.FromV2JSON))},
	zipkinThrift: {Format: "zipkin", memory: each(zipkin.V1ThriftMemory), decode: decodeEach(translateZipkin(zipkin.FromV1Thrift))},
}

// aliases are names of encodings in configurations of jaeger-ingester.
var aliases = map[string]string{"protobuf": JaegerProto, "json": JaegerJSON, "zipkin-thrift": zipkinThrift}

// NewDecoder returns the decoder of an encoding, also under its name in jaeger-ingester. The limits
// apply to the value of each record.
func NewDecoder(encoding string, limits otlpdata.Limits) (*Decoder, error) {
	name := encoding
	if alias, ok := aliases[name]; ok {
		name = alias
	}
	d, ok := decoders[name]
	if !ok {
		return nil, fmt.Errorf("unknown encoding %q; use one of %s", encoding, strings.Join(decodable(), ", "))
	}
	d.limits = limits
	return &d, nil
}

// decodable returns the sorted names of all encodings that can be read.
func decodable() (names []string) {
	for name := range decoders {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Memory returns the maximum number of bytes that Decode holds besides the values, unless Decode
// asks for more.
func (d *Decoder) Memory(values [][]byte) int64 { return d.memory(d, values) }

// Decode builds one batch from the values of records. If it needs more than Memory, it first calls
// grow with the number of bytes that it needs in total. Errors of grow are returned unchanged; all
// others mean that at least one value is invalid, and are permanent. The batch may keep the values,
// which must not be modified afterwards. Decode sets m.Format.
func (d *Decoder) Decode(values [][]byte, m otlpdata.Meta, grow func(int64) error) (*otlpdata.Batch, error) {
	m.Format = d.Format
	var refused error
	b, err := d.decode(d, values, m, func(n int64) error {
		refused = grow(n)
		return refused
	})
	if err != nil && refused == nil {
		err = pipeline.Permanent(err)
	}
	return b, err
}

// Held returns the number of bytes that a batch from Decode holds besides the values, including the
// memory for walking it.
func (d *Decoder) Held(b *otlpdata.Batch) int64 {
	if d.aliases {
		return int64(b.WalkMemory())
	}
	return int64(b.Size() + b.WalkMemory())
}

func noMemory(*Decoder, [][]byte) int64 { return 0 }

// decodeOTLPProto neither copies the values nor allocates memory for each.
func decodeOTLPProto(d *Decoder, values [][]byte, m otlpdata.Meta, _ func(int64) error) (*otlpdata.Batch, error) {
	return otlpdata.FromRequests(values, m, d.limits)
}

// each adds up the memory for each value.
func each(memory func(value []byte, maxItems int) int64) func(*Decoder, [][]byte) int64 {
	return func(d *Decoder, values [][]byte) (sum int64) {
		for _, v := range values {
			sum += memory(v, cmp.Or(d.limits.Items, otlpdata.DefaultLimits().Items))
		}
		return sum
	}
}

// decodeEach decodes each value by itself and joins the results.
func decodeEach(
	decode func(d *Decoder, value []byte, m otlpdata.Meta) (*otlpdata.Batch, error),
) func(*Decoder, [][]byte, otlpdata.Meta, func(int64) error) (*otlpdata.Batch, error) {
	return func(d *Decoder, values [][]byte, m otlpdata.Meta, _ func(int64) error) (*otlpdata.Batch, error) {
		if len(values) == 0 {
			return otlpdata.FromRequests(nil, m, d.limits)
		}
		parts := make([]*otlpdata.Batch, len(values))
		for i, v := range values {
			var err error
			if parts[i], err = decode(d, v, m); err != nil {
				return nil, err
			}
		}
		return otlpdata.Concat(parts...)
	}
}

func otlpJSONMemory(value []byte, _ int) int64 { return otlpdata.JSONMemory(value) }

func otlpJSON(d *Decoder, value []byte, m otlpdata.Meta) (*otlpdata.Batch, error) {
	return otlpdata.FromJSON(value, m, d.limits)
}

// noLimits is for translated spans: the translation has applied the limits, and senders are not
// responsible for the data that it adds.
var noLimits = otlpdata.Limits{Bytes: math.MaxInt, Spans: math.MaxInt, Items: math.MaxInt}

func translateZipkin(
	translate func([]byte, zipkin.Options) ([]byte, error),
) func(*Decoder, []byte, otlpdata.Meta) (*otlpdata.Batch, error) {
	return func(d *Decoder, value []byte, m otlpdata.Meta) (*otlpdata.Batch, error) {
		otlp, err := translate(value, zipkin.Options{Now: m.Received, Limits: d.limits})
		if err != nil {
			return nil, err
		}
		return otlpdata.FromOTLP(otlp, m, noLimits)
	}
}
