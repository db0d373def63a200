// Package config loads, merges and checks configurations, and prints them.
//
//	preset, files -> flags and environment variables -> --set -> yamltree -> Config
//
// All mistakes are reported together, each with file, line and column.
package config
