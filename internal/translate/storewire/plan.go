package storewire

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"sync"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// plan describes how values of a Go type are encoded and decoded.
type plan struct {
	typ    reflect.Type
	zero   func(v reflect.Value) bool // a field of a struct is left out
	encode func(e *Encoder, v reflect.Value)
	decode func(d *Decoder, v reflect.Value) error
	check  func(v any) error // validates the value to which v points; nil: all are valid
	fields []field           // of a struct
	names  map[string]int    // index in fields
}

type field struct {
	name  string
	index int // in the struct
	plan  *plan
}

// read decodes a value and checks it.
func (p *plan) read(d *Decoder, v reflect.Value) error {
	if err := p.decode(d, v); err != nil || p.check == nil {
		return err
	}
	return p.check(v.Addr().Interface())
}

// plans caches the plan of each type of this program.
var plans sync.Map

// planOf returns the plan of a type.
func planOf(t reflect.Type) *plan {
	if p, known := plans.Load(t); known {
		return p.(*plan)
	}
	p, _ := plans.LoadOrStore(t, newPlan(t))
	return p.(*plan)
}

// maxFields is the number of fields that a struct can have.
const maxFields = 64

func newPlan(t reflect.Type) *plan {
	p := &plan{typ: t, zero: reflect.Value.IsZero, check: checkOf(t)}
	if special(p) {
		return p
	}
	switch t.Kind() {
	case reflect.Bool:
		p.encode, p.decode = encodeBool, decodeBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.encode, p.decode = encodeInt, decodeInt
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.encode, p.decode = encodeUint, decodeUint
	case reflect.Float64:
		p.encode, p.decode = encodeFloat, decodeFloat
	case reflect.String:
		p.encode = func(e *Encoder, v reflect.Value) { e.text(v.String()) }
		p.decode = decodeText
	case reflect.Pointer:
		pointerPlan(p)
	case reflect.Slice:
		slicePlan(p)
	case reflect.Array:
		arrayPlan(p)
	case reflect.Map:
		setPlan(p, planOf(t.Key()))
	case reflect.Struct:
		structPlan(p)
	default:
		p.encode = func(e *Encoder, _ reflect.Value) { e.err = fmt.Errorf("storewire: cannot encode %s", t) }
		p.decode = func(*Decoder, reflect.Value) error { return fmt.Errorf("storewire: cannot decode %s", t) }
	}
	return p
}

func structPlan(p *plan) {
	p.names = make(map[string]int)
	for i := range p.typ.NumField() {
		f := p.typ.Field(i)
		tenant := p.typ == reflect.TypeFor[tracestore.Query]() && f.Name == "Tenant"   // in the metadata of a call
		if !f.IsExported() || tenant || f.Type == reflect.TypeFor[*otlpdata.Batch]() { // sent as OTLP
			continue
		}
		p.names[f.Name] = len(p.fields)
		p.fields = append(p.fields, field{f.Name, i, planOf(f.Type)})
	}
	if len(p.fields) > maxFields {
		panic(fmt.Sprintf("storewire: %s has more than %d fields", p.typ, maxFields))
	}
	p.encode = func(e *Encoder, v reflect.Value) { e.structure(p, v) }
	p.decode = func(d *Decoder, v reflect.Value) error { return d.structure(p, v) }
}

// later returns the plan of a type when it is needed, because types may be recursive.
func later(t reflect.Type) func() *plan { return sync.OnceValue(func() *plan { return planOf(t) }) }

func pointerPlan(p *plan) {
	elem := later(p.typ.Elem())
	p.encode = func(e *Encoder, v reflect.Value) {
		if v.IsNil() {
			e.null()
			return
		}
		elem().encode(e, v.Elem())
	}
	p.decode = func(d *Decoder, v reflect.Value) error {
		if d.isNull() {
			return nil
		}
		if err := d.memory.Grow(int64(p.typ.Elem().Size())); err != nil {
			return err
		}
		v.Set(reflect.New(p.typ.Elem()))
		return elem().read(d, v.Elem())
	}
}

func slicePlan(p *plan) {
	p.zero = func(v reflect.Value) bool { return v.Len() == 0 }
	if p.typ.Elem().Kind() == reflect.Uint8 {
		p.encode = func(e *Encoder, v reflect.Value) { e.bytes(v.Bytes()) }
		p.decode = func(d *Decoder, v reflect.Value) error {
			b, err := d.bytes()
			v.SetBytes(b)
			return err
		}
		return
	}
	elem := later(p.typ.Elem())
	p.encode = func(e *Encoder, v reflect.Value) { e.list(elem(), v, v.Len()) }
	p.decode = func(d *Decoder, v reflect.Value) error { return d.list(elem(), v) }
}

// arrayPlan is for ids, and for arrays of values, which may be shorter in another version. Zero
// values at the end are left out.
func arrayPlan(p *plan) {
	if p.typ.Elem().Kind() == reflect.Uint8 {
		p.encode = func(e *Encoder, v reflect.Value) { e.bytes(idBytes(v)) }
		p.decode = func(d *Decoder, v reflect.Value) error {
			b, err := d.bytes()
			if err == nil && len(b) != p.typ.Len() {
				return invalid("%s has %d bytes, want %d", p.typ.Name(), len(b), p.typ.Len())
			}
			reflect.Copy(v, reflect.ValueOf(b))
			return err
		}
		return
	}
	elem := planOf(p.typ.Elem())
	p.encode = func(e *Encoder, v reflect.Value) {
		n := v.Len()
		for n > 0 && elem.zero(v.Index(n-1)) {
			n--
		}
		e.list(elem, v, n)
	}
	p.decode = func(d *Decoder, v reflect.Value) error {
		n, err := d.count()
		if err == nil && n > p.typ.Len() {
			return invalid("%d values, want at most %d", n, p.typ.Len())
		}
		for i := 0; i < n && err == nil; i++ {
			err = elem.read(d, v.Index(i))
		}
		return err
	}
}

func encodeBool(e *Encoder, v reflect.Value) {
	if v.Bool() {
		e.head(majorSimple, simpleTrue)
		return
	}
	e.head(majorSimple, simpleFalse)
}

func decodeBool(d *Decoder, v reflect.Value) error {
	n, err := d.item(majorSimple)
	if err == nil && n != simpleTrue && n != simpleFalse {
		return invalid("value %d, want a boolean", n)
	}
	v.SetBool(n == simpleTrue)
	return err
}

func encodeInt(e *Encoder, v reflect.Value) {
	if n := v.Int(); n < 0 {
		e.head(majorNegative, uint64(-1-n))
	} else {
		e.head(majorUint, uint64(n))
	}
}

func decodeInt(d *Decoder, v reflect.Value) error {
	n, err := d.int()
	if err == nil && v.OverflowInt(n) {
		return invalid("number %d exceeds %s", n, v.Type())
	}
	v.SetInt(n)
	return err
}

func (d *Decoder) int() (int64, error) {
	major, n, err := d.head()
	switch {
	case err != nil:
		return 0, err
	case major > majorNegative:
		return 0, invalid("item of type %d, want an integer", major)
	case n > math.MaxInt64:
		return 0, invalid("integer has more than 64 bits")
	case major == majorNegative:
		return -1 - int64(n), nil
	}
	return int64(n), nil
}

func encodeUint(e *Encoder, v reflect.Value) { e.head(majorUint, v.Uint()) }

func decodeUint(d *Decoder, v reflect.Value) error {
	n, err := d.item(majorUint)
	if err == nil && v.OverflowUint(n) {
		return invalid("number %d exceeds %s", n, v.Type())
	}
	v.SetUint(n)
	return err
}

func encodeFloat(e *Encoder, v reflect.Value) {
	bits := math.Float64bits(v.Float())
	e.buf = append(e.buf, majorSimple<<5|eightBytes)
	e.buf = binary.BigEndian.AppendUint64(e.buf, bits)
}

func decodeFloat(d *Decoder, v reflect.Value) error {
	if len(d.rest) == 0 || d.rest[0] != majorSimple<<5|eightBytes {
		return invalid("item is not a float of 64 bits")
	}
	_, bits, err := d.head()
	v.SetFloat(math.Float64frombits(bits))
	return err
}

func decodeText(d *Decoder, v reflect.Value) error {
	s, err := d.text()
	v.SetString(s)
	return err
}
