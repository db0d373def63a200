// Package migrate translates configurations of other tools into one of this program: Collector
// files, Jaeger 2 files, and flags and environment variables of Jaeger 1.
//
//	text -- detect, parse --> document -- mapping of the format --> document with notes --> YAML
//
// A document is a tree of YAML nodes, so that the order and the comments of the input are
// preserved. The mapping of each format edits it with the methods of document and block, which
// leave notes about changes, dropped keys, and decisions for the user. Notes become comments above
// their line. Only components.go imports this package.
package migrate
