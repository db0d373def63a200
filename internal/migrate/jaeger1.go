package migrate

import "errors"

// fromJaeger1 translates flags and environment variables of Jaeger 1.
func fromJaeger1(string) (*document, error) {
	return nil, errors.New("flags of Jaeger 1 cannot be translated yet")
}

// isJaeger1 reports whether a text holds flags or environment variables of Jaeger 1.
func isJaeger1(string) bool { return false }
