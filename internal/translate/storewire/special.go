package storewire

import (
	"bytes"
	"cmp"
	"encoding"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// special sets the plan of a type that is not encoded by its kind, and reports whether the type is
// special.
func special(p *plan) bool {
	switch p.typ {
	case reflect.TypeFor[time.Time]():
		p.zero = func(v reflect.Value) bool { return pointerTo[time.Time](v).IsZero() }
		p.encode, p.decode = encodeTime, decodeTime
	case reflect.TypeFor[tracestore.Histogram]():
		p.encode, p.decode = encodeHistogram, decodeHistogram
	case reflect.TypeFor[*regexp.Regexp]():
		p.encode = func(e *Encoder, v reflect.Value) { e.text(v.Interface().(*regexp.Regexp).String()) }
		p.decode = decodePattern
	case reflect.TypeFor[tracestore.Expr]():
		p.encode, p.decode = encodeNode, nodeDecoder(conditions)
	case reflect.TypeFor[tracestore.Operand]():
		p.encode, p.decode = encodeNode, nodeDecoder(operands)
	case reflect.TypeFor[otlpdata.Value]():
		p.encode, p.decode = encodeValue, decodeValue
	default:
		_, text := reflect.Zero(p.typ).Interface().(encoding.TextMarshaler)
		if text {
			p.encode, p.decode = encodeNamed, decodeNamed
		}
		return text
	}
	return true
}

// encodeNamed encodes a constant by its name, so that its number may change.
func encodeNamed(e *Encoder, v reflect.Value) {
	name, err := v.Interface().(encoding.TextMarshaler).MarshalText()
	if err != nil {
		e.err = err
		return
	}
	e.text(string(name))
}

// maxName is the maximum number of bytes of a name of a value.
const maxName = 64

func decodeNamed(d *Decoder, v reflect.Value) error {
	name, err := d.text()
	if err != nil {
		return err
	}
	if len(name) > maxName {
		return invalid("name with %d bytes; the longest has %d", len(name), maxName)
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(name)); err != nil {
		return invalid("%w", err)
	}
	return nil
}

// pointerTo returns a pointer to a value, or to a copy of it.
func pointerTo[T any](v reflect.Value) *T {
	if v.CanAddr() {
		return v.Addr().Interface().(*T)
	}
	c := v.Interface().(T)
	return &c
}

func encodeTime(e *Encoder, v reflect.Value) {
	t := pointerTo[time.Time](v)
	e.head(majorArray, 2)
	encodeInt(e, reflect.ValueOf(t.Unix()))
	e.head(majorUint, uint64(t.Nanosecond()))
}

func decodeTime(d *Decoder, v reflect.Value) error {
	if n, err := d.count(); err != nil || n != 2 {
		return cmp.Or(err, invalid("time with %d parts", n))
	}
	seconds, err := d.int()
	if err != nil {
		return err
	}
	nanos, err := d.item(majorUint)
	if err == nil && nanos >= uint64(time.Second) {
		return invalid("time with %d nanoseconds", nanos)
	}
	*pointerTo[time.Time](v) = time.Unix(seconds, int64(nanos)).UTC()
	return err
}

func encodeHistogram(e *Encoder, v reflect.Value) {
	h := pointerTo[tracestore.Histogram](v)
	first, counts := h.Counts()
	e.head(majorArray, uint64(2+len(counts)))
	e.head(majorUint, h.Sum)
	e.head(majorUint, uint64(first))
	for _, n := range counts {
		e.head(majorUint, n)
	}
}

func decodeHistogram(d *Decoder, v reflect.Value) error {
	n, err := d.count()
	if err != nil || n < 2 || n > 2+tracestore.Buckets {
		return cmp.Or(err, invalid("histogram with %d parts", n))
	}
	var start [2]uint64
	for i := range start {
		if start[i], err = d.item(majorUint); err != nil {
			return err
		}
	}
	if err := d.memory.Grow(int64(n) * 8); err != nil {
		return err
	}
	counts := make([]uint64, n-2)
	for i := range counts {
		if counts[i], err = d.item(majorUint); err != nil {
			return err
		}
	}
	h, err := tracestore.HistogramOf(start[0], int(min(start[1], tracestore.Buckets)), counts)
	if err != nil {
		return invalid("%w", err)
	}
	*pointerTo[tracestore.Histogram](v) = h
	return nil
}

// conditions returns the types of conditions.
func conditions() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[tracestore.And](), reflect.TypeFor[tracestore.Or](), reflect.TypeFor[tracestore.Not](),
		reflect.TypeFor[tracestore.Cond](), reflect.TypeFor[tracestore.Compare]()}
}

// operands returns the types of operands of comparisons.
func operands() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[tracestore.Field](), reflect.TypeFor[tracestore.Constant](),
		reflect.TypeFor[tracestore.Arithmetic](), reflect.TypeFor[tracestore.Truth]()}
}

// encodeNode encodes a condition or an operand: the name of its type and its content.
func encodeNode(e *Encoder, v reflect.Value) {
	if v.IsNil() {
		e.null()
		return
	}
	v = v.Elem()
	e.head(majorArray, 2)
	e.text(v.Type().Name())
	planOf(v.Type()).encode(e, v)
}

// nodeDecoder returns a function that decodes a value of one of some types.
func nodeDecoder(types func() []reflect.Type) func(d *Decoder, v reflect.Value) error {
	return func(d *Decoder, v reflect.Value) error {
		if d.parts++; d.parts > MaxParts {
			return invalid("conditions have more than %d parts", MaxParts)
		}
		if d.isNull() {
			return nil
		}
		if n, err := d.count(); err != nil || n != 2 {
			return cmp.Or(err, invalid("condition with %d parts", n))
		}
		if d.depth++; d.depth > MaxDepth {
			return invalid("condition is nested more than %d deep", MaxDepth)
		}
		name, err := d.text()
		if err != nil {
			return err
		}
		known := types()
		i := slices.IndexFunc(known, func(t reflect.Type) bool { return t.Name() == name })
		if i < 0 {
			return invalid("unknown condition; the server may be older than the client")
		}
		p := planOf(known[i])
		if err := d.memory.Grow(int64(p.typ.Size())); err != nil {
			return err
		}
		node := reflect.New(p.typ).Elem()
		if err := p.read(d, node); err != nil {
			return err
		}
		d.depth--
		v.Set(node)
		return nil
	}
}

// encodeValue encodes a text, a boolean or a number: its kind and its content. Conditions have no
// other values.
func encodeValue(e *Encoder, v reflect.Value) {
	value := pointerTo[otlpdata.Value](v)
	e.head(majorArray, 2)
	e.head(majorUint, uint64(value.Kind()))
	switch value.Kind() {
	case otlpdata.ValueString:
		e.text(value.Str())
	case otlpdata.ValueBool:
		encodeBool(e, reflect.ValueOf(value.Bool()))
	case otlpdata.ValueInt:
		encodeInt(e, reflect.ValueOf(value.Int()))
	case otlpdata.ValueDouble:
		encodeFloat(e, reflect.ValueOf(value.Double()))
	default:
		e.err = fmt.Errorf("storewire: cannot encode a constant of kind %d", value.Kind())
	}
}

func decodeValue(d *Decoder, v reflect.Value) error {
	if n, err := d.count(); err != nil || n != 2 {
		return cmp.Or(err, invalid("constant with %d parts", n))
	}
	kind, err := d.item(majorUint)
	if err != nil {
		return err
	}
	var (
		text    string
		boolean bool
		integer int64
		float   float64
	)
	value := pointerTo[otlpdata.Value](v)
	switch otlpdata.ValueKind(min(kind, math.MaxUint8)) {
	case otlpdata.ValueString:
		text, err = d.text()
		*value = otlpdata.StringValue(text)
	case otlpdata.ValueBool:
		err = decodeBool(d, reflect.ValueOf(&boolean).Elem())
		*value = otlpdata.BoolValue(boolean)
	case otlpdata.ValueInt:
		integer, err = d.int()
		*value = otlpdata.IntValue(integer)
	case otlpdata.ValueDouble:
		err = decodeFloat(d, reflect.ValueOf(&float).Elem())
		*value = otlpdata.DoubleValue(float)
	default:
		return invalid("unknown kind %d of a constant", kind)
	}
	return err
}

func decodePattern(d *Decoder, v reflect.Value) error {
	text, err := d.text()
	if err != nil {
		return err
	}
	if d.patterns += len(text); d.patterns > MaxPatterns {
		return invalid("regular expressions have more than %d bytes", MaxPatterns)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return invalid("%w", err)
	}
	if d.steps += tracestore.PatternSteps(tree, MaxPatternSteps); d.steps > MaxPatternSteps {
		return invalid("regular expressions have more than %d steps with repetitions expanded", MaxPatternSteps)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return invalid("%w", err)
	}
	v.Set(reflect.ValueOf(re))
	return nil
}

// setPlan sets the plan of a set of ids.
func setPlan(p, key *plan) {
	p.zero = func(v reflect.Value) bool { return v.Len() == 0 }
	p.encode = func(e *Encoder, v reflect.Value) {
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return bytes.Compare(idBytes(a), idBytes(b)) })
		e.head(majorArray, uint64(len(keys)))
		for _, k := range keys {
			e.bytes(idBytes(k))
		}
	}
	p.decode = func(d *Decoder, v reflect.Value) error {
		n, err := d.count()
		if err != nil {
			return err
		}
		if err := d.memory.Grow(2 * int64(n) * int64(key.typ.Size())); err != nil {
			return err
		}
		v.Set(reflect.MakeMapWithSize(p.typ, n))
		for range n {
			k := reflect.New(key.typ).Elem()
			if err := key.read(d, k); err != nil {
				return err
			}
			v.SetMapIndex(k, reflect.Zero(p.typ.Elem()))
		}
		return nil
	}
}

// idBytes returns the bytes of an id that may not be addressable.
func idBytes(v reflect.Value) []byte {
	if !v.CanAddr() {
		c := reflect.New(v.Type()).Elem()
		c.Set(v)
		v = c
	}
	return v.Bytes()
}
