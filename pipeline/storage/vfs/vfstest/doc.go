// Package vfstest is a file system for tests of components that store data: one in memory that can
// lose power, and a wrapper of any vfs.FS that counts operations and makes chosen ones fail.
//
//	test --> Injector --> Mem --.--> Kill()  --> Mem   all that was written; no locks, no handles
//	         rules,             |
//	         counters           '--> Crash() --> Mem   what was synced, and some of the rest
//
//	directory                                     file
//	  disk     names as of the last SyncDir         disk     bytes and size as of the last Sync
//	  pending  create, rename, remove since then    pending  writes and truncations since then
//	  live     disk + all of pending                live     disk + all of pending
//
// The power failure of Crash:
//
//   - A directory keeps a prefix of its pending changes, chosen at random, as a journal would. A
//     move between directories is two changes; the removal is only kept if the new name is.
//   - A file keeps its size after a prefix of its pending changes. Independently, each 512-byte
//     sector keeps its content after a prefix of the changes that touched it, so writes tear
//     and arrive in any order. A sector that never arrived reads as zeros.
//   - Half of the files and directories keep nothing or everything, which independent sectors would
//     hardly ever do.
//   - After a Sync failed by an Injector the fate of its bytes stays unknown, and a later
//     successful Sync does not write them.
package vfstest
