package memory

import "unsafe"

// Estimated memory in bytes, including unused space: maps count as two thirds full and lists as
// three quarters full. A test compares the sum with the heap. Each constant is added and subtracted
// symmetrically, so the estimate of an empty store is 0.
const (
	costRow     = int64(unsafe.Sizeof(row{}))
	costBlock   = int64(unsafe.Sizeof(block{})) + 32 // with the rounding of its two allocations
	costTrace   = int64(unsafe.Sizeof(trace{})) + 56 // with its slots in the map and in the list of blocks
	costRef     = 11                                 // a row in a list
	costTerm    = 40                                 // a value in postings
	costList    = int64(unsafe.Sizeof(list{})) + 40  // with its first blocks
	costName    = 120                                // a service, operation or attribute key without its text
	costOrigin  = int64(unsafe.Sizeof(origin{})) + 80
	costKeyVal  = 48 // a decoded attribute of a resource or scope
	costTenant  = int64(unsafe.Sizeof(tenant{})) + 5*48
	costPerSpan = costRow + costTerm + 5*costRef // row, identity, and the lists that contain each span
)
