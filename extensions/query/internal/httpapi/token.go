package httpapi

import (
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/client"
)

// PassToken adds the bearer token of a request to its context, from which remote storage clients
// forward it.
func PassToken(logger *zap.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := BearerToken(logger, r.Header)
		if token == "" {
			next.ServeHTTP(w, r)
			return
		}
		with := r.WithContext(client.WithBearerToken(r.Context(), token))
		next.ServeHTTP(w, with)
		r.Pattern = with.Pattern // the listener names the span of the request after it
	})
}

// BearerToken returns the token in the Authorization header or, if it is absent, in
// X-Forwarded-Access-Token: the word after `Bearer`, or the only word. For other schemes it is "".
// It logs a warning if the header has more than two words.
func BearerToken(logger *zap.Logger, h http.Header) string {
	value := h.Get("Authorization")
	if value == "" {
		value = h.Get("X-Forwarded-Access-Token")
	}
	switch words := strings.Split(value, " "); {
	case len(words) == 1:
		return value
	case len(words) == 2 && words[0] == "Bearer":
		return words[1]
	case len(words) > 2:
		logger.Warn("Invalid authorization header value, skipping token propagation")
	}
	return ""
}
