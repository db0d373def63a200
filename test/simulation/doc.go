// Package simulation tests agents, collectors and clients in one process, with a network and disks
// in memory and in fake time, and injects faults. The network is package simnet.
package simulation
