// Package directory keeps the folder of a span store in order: its layout, its version, its lock, and the reserve for a full disk.
//
//	FORMAT                                   one line: the version of the layout
//	LOCK                                     held by the process that uses the folder
//	reserve                                  space that is given up when the disk is full, so that a flush can still free the log
//	log/<epoch>-<part>.log                   spans not yet in a segment, see package wal
//	seg/<yyyymmdd>/<level>-<first>-<last>.seg   segments by day of arrival, level of merging, and the log epochs that they hold
//	quarantine/                              files that could not be read, as they were
//	quarantine/<epoch>.damage.txt            what is wrong with a log, see [Dir.Mark]
//	**/*.tmp                                 unfinished files of a process that died
//
// There is no manifest: names say what a file replaces. A log whose epoch lies in a readable segment is done with, and so is a segment whose
// epochs lie in one of a higher level.
package directory
