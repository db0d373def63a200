// Package graph builds the graphs of calls between services, and of calls to peers that send no
// spans themselves.
//
//	dependencies.go           Builder, callReader: one query for calls
//	callscan.go, callpool.go  calls among the rows of one source
//	parents.go                parent resolution: the unresolved spans and the choice of a parent
//	parentsearch.go           search for parents in other sources
//	edgecache.go              results that are kept from query to query
//	cachequery.go             use of the edge cache by queries
//	warm.go                   filling of the edge cache ahead of queries
//	edges.go                  calls with their durations and connections
//	peers.go, peerscan.go     calls to peers
//	peernames.go              names of peers in rows
//	parentfilter.go           a set of possible parents
//
// Each source finds the parents of its own spans. A flush cuts traces, so the parents of other
// spans are in other sources. Parent resolution searches these, first the ones with spans of about
// the same time.
package graph
