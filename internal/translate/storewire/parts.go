package storewire

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Split encodes a message and passes it to send in parts of at most limit bytes, each of which is a
// message of the same type. Their concatenation is the message. A field that is larger makes a part
// of its own. There is at least one part. send may keep a part.
func Split(m proto.Message, limit int, send func(part []byte) error) error {
	b, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	for len(b) > limit {
		end := 0
		for {
			_, _, n := protowire.ConsumeField(b[end:])
			if n < 0 { // cannot happen
				return protowire.ParseError(n)
			}
			if end > 0 && end+n > limit {
				break
			}
			if end += n; end == len(b) {
				break
			}
		}
		if err := send(b[:end:end]); err != nil {
			return err
		}
		if b = b[end:]; len(b) == 0 {
			return nil
		}
	}
	return send(b)
}

// Join adds a part of a split message to m.
func Join(m proto.Message, part []byte) error {
	if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(part, m); err != nil {
		return invalid("%w", err)
	}
	return nil
}
