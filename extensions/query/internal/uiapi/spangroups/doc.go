// Package spangroups serves the group-by tables of the web UI: the number, errors and durations of
// spans or traces by the values of one or two fields.
package spangroups
