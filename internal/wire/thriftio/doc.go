// Package thriftio reads and writes Thrift structs field by field. The code generated from our Thrift files is made of calls of it.
//
// What is read is safe whatever the bytes are: nothing is allocated for a count or a length before the bytes are there, unknown fields and
// those of another type than expected are skipped (nested at most as deep as the Thrift library allows), and a required field that does not
// come is an error. A struct without required fields may still be one byte on the wire and a hundred in memory, so the input's size is to
// be limited accordingly.
package thriftio
