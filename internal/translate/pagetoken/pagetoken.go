// Package pagetoken encodes positions in the results of searches as page tokens. A token is the
// cursor of the next page and a hash that binds it to a query. The server keeps nothing, so a token
// does not expire, and any process accepts it.
//
// The hash detects mistakes: a token that was changed or that belongs to another query. It is not a
// secret, because a token is only a position. What a client may read does not depend on it.
package pagetoken

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	version  = 1
	hashSize = 16
	size     = 1 + 8 + len(tracestore.Cursor{}.ID) + hashSize
)

// ErrInvalid is the error of a token that New did not return for the query.
var ErrInvalid = errors.New("page token is invalid or belongs to another query; repeat the search without it")

// New returns the token for the results after a cursor, or "" for the zero cursor. query identifies
// the tenant and the query, but not the size of pages.
func New(c tracestore.Cursor, query []byte) string {
	if !c.Set {
		return ""
	}
	b := make([]byte, 0, size)
	b = append(binary.BigEndian.AppendUint64(append(b, version), c.Start), c.ID[:]...)
	hash := sha256.Sum256(append(b[:len(b):len(b)], query...))
	return base64.RawURLEncoding.EncodeToString(append(b, hash[:hashSize]...))
}

// Parse returns the cursor of a token, or the zero cursor for "".
func Parse(token string, query []byte) (c tracestore.Cursor, err error) {
	if token == "" {
		return c, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(b) != size {
		return c, ErrInvalid
	}
	position := tracestore.Cursor{Start: binary.BigEndian.Uint64(b[1:]), Set: true}
	copy(position.ID[:], b[1+8:])
	if New(position, query) != token {
		return c, ErrInvalid
	}
	return position, nil
}
