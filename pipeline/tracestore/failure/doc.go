// Package failure describes why spans failed, and tells kinds of failures apart: by service, type
// of the error, message without its variable parts, and top frame of the stack trace.
//
//	failure.go what a failed span says about its error
//	message.go the variable parts of messages
//	frame.go   the top frame of stack traces of several languages
//	group.go   the id of a group of similar failures
package failure
