// Package errorgroups lists failed spans in groups by what failed: service, type of the error,
// message without its variable parts, and top frame of the stack trace; see package failure. The
// store counts the spans of each group. Only examples are read.
//
//	errorgroups.go route, parameters
//	count.go       the numbers of all groups
//	reader.go      reads the newest failed spans, within limits
//	example.go     an example of each group
//	trend.go       which groups are new, and which have grown
//	where.go       the search that finds the spans of a group
//	answer.go      the response
package errorgroups
