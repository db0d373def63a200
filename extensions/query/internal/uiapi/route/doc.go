// Package route is what the routes of /api/ui/v1 share: their parameters and the forms of their
// answers.
package route
