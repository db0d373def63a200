// Package simulation is a network in memory, for tests that run several programs of this module in
// one process under the fake time of testing/synctest: it waits on channels and timers only.
// Everything that goes wrong in it is asked for, and drawn from a seed.
//
//	Host 10.0.0.1 ──Dial──▶ link: delay, rate, partition, cut, refusal ──▶ Host 10.0.1.1, Listen
//
// A Host is one life of a machine: after Kill or CutPower it has no network any more, and the next
// life is a Host of its own with the same address. Its Listen, ListenPacket and Dial fit the
// functions of the same names in the environment of a program.
//
// What holds of connections is what TCP promises: bytes arrive in order, once, or the connection
// ends with an error; a partition holds them back and loses none; an end that is closed, also by
// the death of its process, is seen by the other after all that was sent before; a machine without
// power is silent, and resets old connections in its next life when something comes on them.
// Datagrams get lost, arrive twice and overtake each other.
package simnet
