// Package password checks passwords against the bcrypt hashes of an htpasswd file.
//
// A comparison is deliberately slow, so the package bounds the work that clients can cause: the
// number of concurrent comparisons, of requests that wait for one, and of those from one client
// address. An address that has sent several wrong passwords must wait before its next check.
// Passwords that were correct are remembered until the hash of their user changes and need no
// comparison. A wrong password costs the same number of bcrypt rounds for every user name, whether
// the user exists or not.
package password
