package foreign

import (
	"slices"
	"strings"
)

// authTypes are extensions whose settings are keys of listeners and connections in this program.
var authTypes = []string{"basicauth", "bearertokenauth", "headers_setter"}

// authenticators replaces references to authentication extensions with this program's keys, and
// leaves out the extensions.
func (r *rewriter) authenticators() {
	for _, b := range blocks {
		for _, id := range r.Keys(b.section) {
			path := at([]string{b.section, id}, b.path)
			if !slices.Contains(b.types, TypeOf(id)) || !r.Has(at(path, "auth.authenticator")...) {
				continue
			}
			if b.section == exporters {
				r.authenticateClient(path)
			} else {
				r.authenticateServer(path)
			}
		}
	}
	for _, id := range r.Keys(extensions) {
		if slices.Contains(authTypes, TypeOf(id)) && !r.known(extensions, TypeOf(id)) {
			r.replacedComponent(extensions, id, "listeners and exporters have the keys auth and headers")
		}
	}
}

// authenticator returns the path of the extension that a block names, or reports that there is none
// or another one.
func (r *rewriter) authenticator(block []string) (path []string, typ string) {
	key := at(block, "auth.authenticator")
	id := r.Text(key...)
	switch {
	case !r.Has(extensions, id):
		r.Refuse(key, "no extension "+id+" is configured")
	case !slices.Contains(authTypes, TypeOf(id)):
		r.Refuse(key, TypeOf(id)+" is not supported; use a file with the keys of auth, or a proxy that authenticates")
	default:
		return []string{extensions, id}, TypeOf(id)
	}
	return nil, ""
}

// credential is a scalar of an extension that becomes a key of a block.
type credential struct {
	from   []string
	to     string
	prefix string
}

// setAuth replaces the block `auth` with keys of this program.
func (r *rewriter) setAuth(block []string, credentials ...credential) {
	reason := r.Text(at(block, "auth.authenticator")...) + " provides the credentials"
	r.Drop(at(block, "auth.authenticator"), "")
	emptied(r, block, at(block, "auth"))
	for _, c := range credentials {
		section, key, _ := strings.Cut(c.to, ".")
		r.Copy(c.from, append(slices.Clone(block), section, key), c.prefix, reason)
		reason = ""
	}
}

// refuseAuth reports a problem of the extension that a block names.
func (r *rewriter) refuseAuth(block []string, problem string) {
	key := at(block, "auth.authenticator")
	r.Refuse(key, r.Text(key...)+": "+problem)
}

// authenticateServer names the file with the credentials of clients.
func (r *rewriter) authenticateServer(block []string) {
	ext, typ := r.authenticator(block)
	switch typ {
	case "basicauth":
		switch {
		case r.Has(at(ext, "htpasswd.inline")...):
			r.refuseAuth(block, "htpasswd.inline is not supported; write the lines to a file, with hashes of htpasswd -B, and name it in file")
		case !r.Has(at(ext, "htpasswd.file")...):
			r.refuseAuth(block, "must have htpasswd.file")
		default:
			r.setAuth(block, credential{at(ext, "htpasswd.file"), "auth.htpasswd_file", ""})
		}
	case "bearertokenauth":
		switch {
		case !r.standardToken(block, ext):
		case !r.Has(at(ext, "filename")...):
			r.refuseAuth(block, "must have filename; write the tokens to that file, one per line")
		default:
			r.setAuth(block, credential{at(ext, "filename"), "auth.bearer_tokens_file", ""})
		}
	case "headers_setter":
		r.refuseAuth(block, "does not authenticate clients")
	}
}

// standardToken reports whether tokens are sent as `Authorization: Bearer TOKEN`, or reports a
// problem.
func (r *rewriter) standardToken(block, ext []string) bool {
	scheme, header := r.Text(at(ext, "scheme")...), r.Text(at(ext, "header")...)
	if (scheme == "" || scheme == "Bearer") && (header == "" || strings.EqualFold(header, "authorization")) {
		return true
	}
	r.refuseAuth(block, "tokens in a file are always sent as Authorization: Bearer TOKEN; for another header, "+
		"use headers of the exporter with ${file:/path}")
	return false
}

// authenticateClient sets the credentials that an exporter sends.
func (r *rewriter) authenticateClient(block []string) {
	ext, typ := r.authenticator(block)
	switch typ {
	case "basicauth":
		for _, key := range []string{"client_auth.username_file", "client_auth.password_file"} {
			if r.Has(at(ext, key)...) {
				r.refuseAuth(block, key+" is not supported; write "+strings.TrimSuffix(key, "_file")+": ${file:/path}")
				return
			}
		}
		if !r.Has(at(ext, "client_auth.username")...) {
			r.refuseAuth(block, "must have client_auth.username")
			return
		}
		r.setAuth(block, credential{at(ext, "client_auth.username"), "auth.username", ""},
			credential{at(ext, "client_auth.password"), "auth.password", ""})
	case "bearertokenauth":
		r.sendToken(block, ext)
	case "headers_setter":
		r.sendHeaders(block, ext)
	}
}

func (r *rewriter) sendToken(block, ext []string) {
	if r.Has(at(ext, "filename")...) {
		if r.standardToken(block, ext) {
			r.setAuth(block, credential{at(ext, "filename"), "auth.bearer_token_file", ""})
		}
		return
	}
	if !r.Has(at(ext, "token")...) {
		r.refuseAuth(block, "must have token or filename")
		return
	}
	scheme, header := "Bearer ", "authorization"
	if r.Has(at(ext, "scheme")...) {
		scheme = strings.TrimLeft(r.Text(at(ext, "scheme")...)+" ", " ")
	}
	if h := r.Text(at(ext, "header")...); h != "" {
		header = h
	}
	r.setAuth(block, credential{at(ext, "token"), "headers." + header, scheme})
}

// sendHeaders sets headers with fixed values.
func (r *rewriter) sendHeaders(block, ext []string) {
	var sent []credential
	for i := 0; r.Has(at(ext, "headers."+itoa(i))...); i++ {
		h := at(ext, "headers."+itoa(i))
		switch action := r.Text(at(h, "action")...); {
		case !r.Has(at(h, "value")...):
			r.refuseAuth(block, "only a value that is set here can be sent; for tenants, see tenancy of listeners and tenant_header of exporters")
			return
		case action != "" && !slices.Contains([]string{"upsert", "insert", "update"}, action):
			r.refuseAuth(block, "action "+action+" is not supported")
			return
		}
		sent = append(sent, credential{at(h, "value"), "headers." + r.Text(at(h, "key")...), ""})
	}
	if r.Has(at(ext, "additional_auth")...) {
		r.refuseAuth(block, "additional_auth is not supported; use headers of the exporter instead of headers_setter")
		return
	}
	r.setAuth(block, sent...)
}
