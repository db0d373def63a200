// Package simnet is a network in memory for tests that run several programs of this module in one
// process in the fake time of testing/synctest. It waits only on channels and timers. Tests request
// all faults explicitly, and random values depend on a seed.
//
//	Host 10.0.0.1 ──Dial──▶ link: delay, rate, partition, cut, refusal ──▶ Host 10.0.1.1, Listen
//
// A Host is one incarnation of a machine. After Kill or CutPower it has no network. A restarted
// machine is a new Host with the same address. The methods Listen, ListenPacket and Dial match the
// functions of the same names in the environment of a program.
//
// Connections behave like TCP connections. Bytes arrive in order and exactly once, or the
// connection fails with an error. A partition delays bytes and loses none. If one end is closed,
// also by the end of its process, the other end sees this after it has read everything that was
// sent before. A machine without power does not answer. After its restart it resets old connections
// when it receives data on them. Datagrams may get lost, arrive twice and arrive in a different
// order.
package simnet
