package yamltree

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Switch is implemented by fields that are enabled by the presence of their key. TurnOn returns a
// pointer to the block below the key.
type Switch interface{ TurnOn() any }

// Decode decodes the value at path into target, a pointer to a struct with defaults, and returns
// all mistakes. Keys match the yaml tags of fields; unknown keys are mistakes. Fields that
// implement encoding.TextUnmarshaler decode themselves.
func (t *Tree) Decode(target any, path ...string) Problems {
	d := &decoder{tree: t}
	d.value(t.Get(path...), reflect.ValueOf(target).Elem(), path)
	return d.problems
}

type decoder struct {
	tree     *Tree
	problems Problems
}

func (d *decoder) problem(pos Pos, path []string, format string, args ...any) {
	d.problems = append(d.problems, Problem{Pos: pos, Path: Display(path...), Msg: fmt.Sprintf(format, args...)})
}

// bad reports a wrong value.
func (d *decoder) bad(path []string, format string, args ...any) {
	d.problem(d.tree.ValuePos(path...), path, format, args...)
}

func (d *decoder) value(in any, out reflect.Value, path []string) {
	if sw, ok := out.Addr().Interface().(Switch); ok {
		d.value(in, reflect.ValueOf(sw.TurnOn()).Elem(), path)
		return
	}
	if u, ok := out.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if s, ok := d.scalar(in, path, "a single value"); ok {
			if err := u.UnmarshalText([]byte(s.Text)); err != nil {
				d.bad(path, "%v", err)
			}
		}
		return
	}
	switch out.Kind() {
	case reflect.Struct:
		d.structure(in, out, path)
	case reflect.Map:
		d.mapping(in, out, path)
	case reflect.Slice:
		d.list(in, out, path)
	case reflect.Pointer:
		if out.IsNil() {
			out.Set(reflect.New(out.Type().Elem()))
		}
		d.value(in, out.Elem(), path)
	default:
		d.primitive(in, out, path)
	}
}

func (d *decoder) structure(in any, out reflect.Value, path []string) {
	switch in := in.(type) {
	case nil:
	case Scalar:
		if !in.Empty {
			d.bad(path, "must be a block of keys, not text%s", keyList(out.Type())) // the text may be a secret
		}
	case []any:
		d.bad(path, "must be a block of keys, not a list%s", keyList(out.Type()))
	case map[string]any:
		fields := map[string]reflect.Value{}
		collect(out, fields)
		for _, k := range d.tree.Keys(path...) {
			at := append(path[:len(path):len(path)], k)
			f, ok := fields[k]
			if hint := unsupported(out.Type(), k); hint != "" {
				d.problem(d.tree.KeyPos(at...), at, "not supported; %s", hint)
				continue
			}
			if !ok {
				d.problem(d.tree.KeyPos(at...), path, "unknown key %q%s", k, Suggest(k, Keys(out.Type()), "known"))
				continue
			}
			d.value(in[k], f, at)
		}
	}
}

func keyList(t reflect.Type) string {
	keys := Keys(t)
	if len(keys) == 0 {
		return "; the block has no keys"
	}
	return ": " + strings.Join(keys, ", ")
}

// collect adds the fields of a struct by key, including the fields of embedded structs without a
// tag.
func collect(v reflect.Value, fields map[string]reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key := f.Tag.Get("yaml")
		switch {
		case f.Anonymous && key == "":
			collect(v.Field(i), fields)
		case key != "" && key != "-":
			fields[key] = v.Field(i)
		}
	}
}

// unsupported returns advice for a key of another program, or "" for any other key. A struct type
// names such keys in fields without a name:
//
//	_ struct{} `unsupported:"key" hint:"delete the key"`
func unsupported(t reflect.Type, key string) string {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("unsupported") == key {
			return f.Tag.Get("hint")
		}
	}
	return ""
}

// Keys returns the keys of a struct type in the order of its fields.
func Keys(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("yaml")
		switch {
		case f.Anonymous && key == "":
			keys = append(keys, Keys(f.Type)...)
		case key != "" && key != "-":
			keys = append(keys, key)
		}
	}
	return keys
}

func (d *decoder) mapping(in any, out reflect.Value, path []string) {
	m, ok := in.(map[string]any)
	if !ok {
		if s, isScalar := in.(Scalar); !isScalar || !s.Empty {
			d.bad(path, "must be a map")
		}
		return
	}
	if out.IsNil() {
		out.Set(reflect.MakeMap(out.Type()))
	}
	for _, k := range d.tree.Keys(path...) {
		at := append(path[:len(path):len(path)], k)
		v := reflect.New(out.Type().Elem()).Elem()
		d.value(m[k], v, at)
		out.SetMapIndex(reflect.ValueOf(k).Convert(out.Type().Key()), v)
	}
}

func (d *decoder) list(in any, out reflect.Value, path []string) {
	l, ok := in.([]any)
	if !ok {
		if s, isScalar := in.(Scalar); !isScalar || !s.Empty {
			d.bad(path, "must be a list: [a, b]")
		}
		return
	}
	out.Set(reflect.MakeSlice(out.Type(), len(l), len(l)))
	for i, v := range l {
		d.value(v, out.Index(i), append(path[:len(path):len(path)], strconv.Itoa(i)))
	}
}

// scalar returns in as a scalar with a value, or reports a problem.
func (d *decoder) scalar(in any, path []string, want string) (Scalar, bool) {
	s, ok := in.(Scalar)
	switch {
	case !ok:
		d.bad(path, "must be %s", want)
	case s.Null:
		return s, false
	case s.Empty:
		d.bad(path, "has no value; write one, or delete the line to use the default")
		return s, false
	case s.Bad != "":
		d.bad(path, "%s", s.Bad)
		return s, false
	}
	return s, ok
}

func (d *decoder) primitive(in any, out reflect.Value, path []string) {
	want := "a number"
	switch out.Kind() {
	case reflect.Bool:
		want = "true or false"
	case reflect.String:
		want = "text"
	}
	s, ok := d.scalar(in, path, want)
	if !ok {
		return
	}
	switch {
	case out.Kind() == reflect.String:
		out.SetString(s.Text)
	case out.Kind() == reflect.Bool:
		if s.Quoted || s.Text != "true" && s.Text != "false" {
			d.bad(path, "%q is not true or false; write one of them, without quotes", s.Text)
			return
		}
		out.SetBool(s.Text == "true")
	default:
		if err := setNumber(out, s.Text); err != nil {
			d.bad(path, "%v", err)
		}
	}
}

// setNumber parses text into out. On error, out is unchanged.
func setNumber(out reflect.Value, text string) error {
	text = strings.ReplaceAll(text, "_", "") // YAML allows them between digits
	number := reflect.New(out.Type()).Elem()
	var err error
	of := "a whole number"
	switch {
	case out.CanInt():
		var n int64
		n, err = strconv.ParseInt(text, 10, out.Type().Bits())
		number.SetInt(n)
	case out.CanUint():
		var n uint64
		n, err = strconv.ParseUint(text, 10, out.Type().Bits())
		number.SetUint(n)
		of = "a whole number of 0 or more"
	case out.CanFloat():
		var f float64
		f, err = strconv.ParseFloat(text, out.Type().Bits())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			err = cmp.Or(err, strconv.ErrSyntax)
		}
		number.SetFloat(f)
		of = "a number"
	default:
		return fmt.Errorf("BUG: config field of unsupported type %s", out.Type())
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%q is out of range", text)
	case err != nil:
		return fmt.Errorf("%q is not %s", text, of)
	}
	out.Set(number)
	return nil
}
