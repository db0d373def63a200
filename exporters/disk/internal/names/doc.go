// Package names lists the names in the span store: services and operations, and keys and values of
// attributes for completion.
//
//	catalog.go                   Catalog: lists of services and operations
//	namelist.go, freshnames.go   lists of services or operations in the making
//	listcache.go                 lists kept from query to query
//	shapes.go                    the vocabulary of sources
//	completion.go, attributes.go lists of keys and values of attributes
//	textcache.go                 keys and values in segments, kept from query to query
//	list.go                      lists of keys and values, with a limit
//	rowscan.go                   names and values that are stored in rows only
//
// Services and operations come from the sorted lists of segments, of which only the needed pages
// are read, so that a list takes the same work however many names are stored. Other names come from
// the vocabulary of a source if possible. Spans with too many different names or values have them
// in rows. Then the rows of the newest blocks are read.
package names
