// Package listen holds what listeners of all protocols share: checks of configuration values, the
// error for an address that cannot be listened on, and common metrics.
package listen
