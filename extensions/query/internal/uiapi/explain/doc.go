// Package explain shows how selected traces differ from others: which attributes they have, in
// which operations they spend more time, and which calls they make more often.
//
//	api.go          the route and its parameters
//	baseline.go     the traces that the selected ones are compared with
//	counts.go       the number of traces, and the limit of the slowest ones
//	read.go         reads the attributes of the examined traces
//	counter.go      counts the traces that have an attribute
//	calls.go        the calls on which attributes occur
//	attributes.go   ranks attributes
//	kinds.go        inputs and outcomes
//	strata.go       compares traces of the same operation
//	numbers.go      ranges of attributes that are numbers
//	significance.go the statistics
//	durations.go    durations of the traces with a value
//	time.go         ranks operations and call paths by time
//	shape.go        ranks call paths by frequency
//	answer*.go      the response
//	tree*.go        selected traces as one tree
package explain
