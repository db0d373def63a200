// Package host runs a configuration: it builds the graph of components, starts and stops them, and
// replaces parts of the graph when the configuration is reloaded.
package host
