// Package errorgroups groups failed spans by what failed: service, type of the error, message
// without its variable parts, and top frame of the stack trace.
//
//	errorgroups.go route, parameters
//	reader.go      reads the newest failed spans, within limits
//	failure.go     what failed: type, message and frame of a span
//	message.go     the variable parts of messages
//	frame.go       the top frame of stack traces of several languages
//	group.go       groups and their counts
//	where.go       the search that finds the spans of a group
//	answer.go      the answer
package errorgroups
