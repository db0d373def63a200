package memory

import "unsafe"

// What things cost in bytes, as the garbage collector sees them: maps count at two thirds full and lists at three quarters. A test
// compares the sum with the heap. Everything that is charged is given back by the same constant, so an empty store costs 0.
const (
	costRow     = int64(unsafe.Sizeof(row{}))
	costBlock   = int64(unsafe.Sizeof(block{})) + 32 // and the rounding of its two allocations
	costTrace   = int64(unsafe.Sizeof(trace{})) + 56 // and its slots in the map and in the list of blocks
	costRef     = 11                                 // a row in a list
	costTerm    = 40                                 // a value in a map of postings
	costList    = int64(unsafe.Sizeof(list{})) + 40  // and its first blocks
	costName    = 120                                // a service, operation or attribute key, without its text
	costOrigin  = int64(unsafe.Sizeof(origin{})) + 80
	costKeyVal  = 48 // a decoded attribute of a resource or scope
	costTenant  = int64(unsafe.Sizeof(tenant{})) + 5*48
	costPerSpan = costRow + costTerm + 5*costRef // row, identity, and the lists that every span is in
)
