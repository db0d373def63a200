package remotestore

import (
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// PutNames returns names as strings of protobuf, with U+FFFD in place of what is not UTF-8, sorted and without duplicates. Where that
// changes one, m carries all of them as they are.
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

// Names returns the names that [PutNames] put into m as they are; told are those in its fields.
func Names(m proto.Message, told []string) []string {
	var exact []string
	for b := range fields(m) {
		exact = append(exact, string(b))
	}
	if exact == nil {
		return told
	}
	return exact
}

// PutName returns a name for a field of m, "" for one that is not UTF-8, which m then carries as it is.
func PutName(m proto.Message, name string) string {
	if !invalid(name) {
		return name
	}
	m.ProtoReflect().SetUnknown(appendField(nil, name))
	return ""
}

// Name returns the name that [PutName] put into m; told is that in its field.
func Name(m proto.Message, told string) string {
	for b := range fields(m) {
		return string(b)
	}
	return told
}

func invalid(s string) bool { return !utf8.ValidString(s) }

func appendField[T string | []byte](dst []byte, value T) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, extension, protowire.BytesType), []byte(value))
}

// fields ranges over what a message carries beyond what it defines.
func fields(m proto.Message) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) { eachField(m.ProtoReflect().GetUnknown(), extension, yield) }
}

// eachField calls yield with the content of each field of that number that has one; what is malformed ends it.
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
