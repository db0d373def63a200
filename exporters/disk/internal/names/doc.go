// Package names lists the names in the span store: services and operations, and keys and values of
// attributes for completion.
//
//	catalog.go                   Catalog: lists of services and operations
//	namelist.go, freshnames.go   construction of lists of services or operations
//	listcache.go                 cache of lists
//	shapes.go                    the vocabulary of sources
//	completion.go, attributes.go lists of keys and values of attributes
//	textcache.go                 cache of keys and values in segments
//	list.go                      lists of keys and values, with a limit
//	rowscan.go                   names and values that are stored in rows only
//
// Services and operations come from the sorted lists of segments. Only the needed pages are read,
// so that the work for a list does not depend on the number of stored names. Other names come from
// the vocabulary of a source if possible. If there are too many different names or values, they are
// stored in rows; then the rows of the newest blocks are read.
package names
