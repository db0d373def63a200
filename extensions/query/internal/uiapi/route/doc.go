// Package route contains what the routes of /api/ui/v1 share: parameters and response formats.
package route
