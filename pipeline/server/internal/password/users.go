package password

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/bcrypt"
)

// Users are the users of an htpasswd file. They are safe for concurrent use.
type Users struct {
	byName  map[string]*user
	maxCost int // of the file
}

type user struct {
	hash   []byte
	cost   int
	proven atomic.Pointer[digest] // digest of the password that matched the hash, or nil
}

// digest is the hash by which a proven password is remembered.
type digest [sha256.Size]byte

// noPassword stands for the password of a user who has no proven one. No password has this digest.
var noPassword digest

// Parse reads users from the content of an htpasswd file: one NAME:HASH per line, with bcrypt
// hashes up to maxCost. Users whose entry is the same in previous, which may be nil, remain proven.
// The error names the file and the line.
func Parse(file string, content []byte, maxCost int, previous *Users) (*Users, error) {
	u := &Users{byName: map[string]*user{}}
	n := 0
	for line := range bytes.Lines(content) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		name, hash, ok := bytes.Cut(line, []byte(":"))
		cost, valid := bcryptCost(hash)
		if !ok || !valid {
			return nil, fmt.Errorf("%s:%d: not a user with a bcrypt hash; create one with htpasswd -B", file, n)
		}
		if cost > maxCost {
			return nil, fmt.Errorf("%s:%d: bcrypt cost %d exceeds max_cost of %d; create the entry with htpasswd -B -C %d, or raise max_cost",
				file, n, cost, maxCost, maxCost)
		}
		u.byName[string(name)] = previous.entry(string(name), hash, cost)
		u.maxCost = max(u.maxCost, cost)
	}
	if len(u.byName) == 0 {
		u.maxCost = bcrypt.MinCost // every password is wrong
	}
	return u, nil
}

// bcryptCost returns the cost of a bcrypt hash. A hash that bcrypt cannot compare is invalid:
// requests of its user would be refused without any work, which would reveal that the user exists.
func bcryptCost(hash []byte) (cost int, valid bool) {
	const alphabet = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	cost, err := bcrypt.Cost(hash)
	encoded := hash[bytes.LastIndexByte(hash, '$')+1:]
	foreign := bytes.ContainsFunc(encoded, func(r rune) bool { return !strings.ContainsRune(alphabet, r) })
	return cost, err == nil && len(encoded) == len(mismatchHash) && !foreign
}

// entry returns the entry of a user, or a new one if it has another hash. u may be nil.
func (u *Users) entry(name string, hash []byte, cost int) *user {
	if u != nil {
		if e, ok := u.byName[name]; ok && bytes.Equal(e.hash, hash) {
			return e
		}
	}
	return &user{hash: bytes.Clone(hash), cost: cost}
}

// Len returns the number of users.
func (u *Users) Len() int { return len(u.byName) }

// Proven reports whether the password is correct, as proven by an earlier comparison. It is fast
// and takes the same time for all users.
func (u *Users) Proven(name string, password []byte) bool {
	sum, want := digest(sha256.Sum256(password)), &noPassword
	if e, ok := u.byName[name]; ok {
		if proven := e.proven.Load(); proven != nil {
			want = proven
		}
	}
	return subtle.ConstantTimeCompare(sum[:], want[:]) == 1
}

// match compares the password with the hash of the user. A mismatch takes 2^maxCost rounds of
// compare for every name.
func (u *Users) match(name string, password []byte, compare func(hash, password []byte) error) bool {
	e, exists := u.byName[name]
	if !exists {
		compare(hashOfNone(u.maxCost), password) //nolint:errcheck // only its work matters
		return false
	}
	if compare(e.hash, password) == nil {
		sum := digest(sha256.Sum256(password))
		e.proven.Store(&sum)
		return true
	}
	for cost := e.cost; cost < u.maxCost; cost++ { // 2^cost + 2^cost + 2^(cost+1) + ... = 2^maxCost
		compare(hashOfNone(cost), password) //nolint:errcheck // only its work matters
	}
	return false
}

// mismatchHash is a salt and a hash in the encoding of bcrypt. No known password has this hash.
const mismatchHash = "N9qo8uLOickgx2ZMRZoMye" + "......................xxxxxxxxx"

// hashOfNone returns a bcrypt hash with the given cost that matches no password. Comparing with it
// takes as long as with any other hash.
func hashOfNone(cost int) []byte { return fmt.Appendf(nil, "$2a$%02d$%s", cost, mismatchHash) }
