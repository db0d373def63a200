// Package namelist stores sorted lists of names, so that a part of a list can be read without the
// rest: the services of all tenants, and their operations.
//
//	keys.go    names as keys, which as bytes have the same order as the names
//	pages.go   sorted keys in pages, with a directory of the first keys
//	lists.go   Lists: services and operations; Builder
//
// A key consists of parts and ends with one byte:
//
//	service    part of the tenant, part of the name, flags [1]: 1 if operations are missing
//	operation  part of the tenant, part of the service, part of the name, kind [1]
//	part       the text with 00 FF for each byte 00, then 00 01
//
// Kinds are 0 for none, 1 client, 2 consumer, 3 internal, 4 producer, 5 server. Operations have the
// names and kinds that lists show (otlpdata.Span.Operation and KindName).
//
//	pages      page*
//	page       CRC-32C of the rest [4], key*
//	key        number of bytes that it shares with the preceding key of the page, number of other
//	           bytes, these bytes
//	directory  of services, then of operations
//	           pages, per page: its length, length of its first key, first key
//
// Numbers are varints.
package namelist
