package remotestore

import (
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// PutNames returns names for a field of m. If a name is not UTF-8, they are repaired, sorted and
// without duplicates, and m carries the original names.
func PutNames(m proto.Message, names []string) []string {
	if !slices.ContainsFunc(names, invalid) {
		return names
	}
	out := make([]string, len(names))
	var exact []byte
	for i, n := range names {
		out[i] = strings.ToValidUTF8(n, "\uFFFD")
		exact = appendField(exact, n)
	}
	m.ProtoReflect().SetUnknown(exact)
	slices.Sort(out)
	return slices.Compact(out)
}

// Names returns the original names that [PutNames] put into m. defined are the names in the field
// of m.
func Names(m proto.Message, defined []string) []string {
	var exact []string
	for b := range fields(m) {
		exact = append(exact, string(b))
	}
	if exact == nil {
		return defined
	}
	return exact
}

// PutName returns a name for a field of m. If the name is not UTF-8, it returns "" and m carries
// the original name.
func PutName(m proto.Message, name string) string {
	if !invalid(name) {
		return name
	}
	m.ProtoReflect().SetUnknown(appendField(nil, name))
	return ""
}

// Name returns the original name that [PutName] put into m. defined is the name in the field of m.
func Name(m proto.Message, defined string) string {
	for b := range fields(m) {
		return string(b)
	}
	return defined
}

func invalid(s string) bool { return !utf8.ValidString(s) }

func appendField[T string | []byte](dst []byte, value T) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, extension, protowire.BytesType), []byte(value))
}

// fields ranges over the additional data of a message.
func fields(m proto.Message) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) { eachField(m.ProtoReflect().GetUnknown(), extension, yield) }
}

// eachField calls yield with the content of each length-delimited field with this number. It stops
// at malformed data.
func eachField(b []byte, number protowire.Number, yield func([]byte) bool) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeField(b)
		if n < 0 {
			return
		}
		if num == number && typ == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(b)
			content, _ := protowire.ConsumeBytes(b[tag:])
			if !yield(content) {
				return
			}
		}
		b = b[n:]
	}
}
