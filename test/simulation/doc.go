// Package simulation runs agents, collectors and clients in one process, on a network and disks in
// memory and in fake time, and lets go wrong what can. The network is in package simnet.
package simulation
