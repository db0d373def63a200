// Package directory keeps the folder of a span store in order: its layout, its version, its lock, and the reserve for a full disk.
//
//	FORMAT                                   one line: the version of the layout
//	LOCK                                     held by the process that uses the folder
//	reserve                                  space that is given up when the disk is full, so that a flush can still free the log
//	log/<epoch>-<part>.log                   spans not yet in a segment, see package wal
//	seg/<yyyymmdd>/<level>-<first>-<last>.seg   segments by day of arrival, level of merging, and the log epochs that they hold
//	deletions/<number>.mark                  what was deleted on request, see package mark
//	sampling.state                           what adaptive sampling learned, see exporters/disk
//	quarantine/                              files that could not be read, as they were
//	quarantine/<epoch>.damage.txt            what is wrong with a log, see [Dir.Mark]
//	**/*.tmp                                 unfinished files of a process that died
//
// There is no manifest: names say what a file holds, and a segment that was made of others names them inside. A log is done with when a readable
// segment was made of it or of its segment, and a segment when a readable one names it.
package directory
