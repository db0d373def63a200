// Package certs loads certificates, private keys, certificate authorities, tokens and other
// credentials from files and reloads them when the files change. Files are checked when they are
// used, at most once per interval; there is no background goroutine. New certificates apply only to
// new handshakes. If new files are invalid, the previous values stay active.
package certs
