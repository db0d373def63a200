// Package idl parses the part of the Thrift interface language that this project uses: namespace, include, constants of strings,
// enumerations with numbers, structs, and services without exceptions. The types of fields are the base types, names, and lists.
package idl

// File is a parsed file.
type File struct {
	Doc        []string // the comment that the file begins with
	Namespaces map[string]string
	Includes   []string // as written: native.thrift
	Consts     []Const
	Enums      []Enum
	Structs    []Struct
	Services   []Service
}

// Const is the name of a string. In all of these types Doc is the comment above the declaration, without the slashes.
type Const struct {
	Doc         []string
	Name, Value string
}

// Enum is a set of named numbers.
type Enum struct {
	Doc    []string
	Name   string
	Values []EnumValue
}

// EnumValue is a member of an Enum.
type EnumValue struct {
	Doc    []string
	Name   string
	Number int32
}

// Struct is a set of numbered fields; the arguments of a method are one as well.
type Struct struct {
	Doc    []string
	Name   string
	Fields []Field
}

// Requiredness says whether a field may be absent.
type Requiredness int

// The kinds of fields. A default field is always written, and may be absent when read.
const (
	Default Requiredness = iota
	Required
	Optional
)

// Field is a member of a Struct. The only default values are those that are zero, `= false`.
type Field struct {
	Doc          []string
	ID           int16 // from 1 to 63
	Requiredness Requiredness
	Type         Type
	Name         string
	HasDefault   bool
}

// Type is the name of a type, of a base type, `native.Span`, or `Span`, or a list of such.
type Type struct {
	Name string
	List bool
}

// Service is a set of methods.
type Service struct {
	Doc     []string
	Name    string
	Methods []Method
}

// Method is a function of a Service. Args has the method's name.
type Method struct {
	Doc    []string
	Name   string
	Oneway bool
	Result Type // Name is "void" where there is none
	Args   Struct
}
