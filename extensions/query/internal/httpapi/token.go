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
		token, ok := bearerToken(r.Header)
		if !ok {
			logger.Warn("Invalid authorization header value, skipping token propagation")
		}
		if token == "" {
			next.ServeHTTP(w, r)
			return
		}
		with := r.WithContext(client.WithBearerToken(r.Context(), token))
		next.ServeHTTP(w, with)
		r.Pattern = with.Pattern // the listener names the span of the request after it
	})
}

// bearerToken returns the token in the Authorization header or, if it is absent, in
// X-Forwarded-Access-Token: the word after `Bearer`, or the only word. For other schemes it is "".
// ok is false if the header has more than two words.
func bearerToken(h http.Header) (token string, ok bool) {
	value := h.Get("Authorization")
	if value == "" {
		value = h.Get("X-Forwarded-Access-Token")
	}
	switch words := strings.Split(value, " "); {
	case len(words) == 1:
		return value, true
	case len(words) == 2 && words[0] == "Bearer":
		return words[1], true
	case len(words) == 2:
		return "", true
	}
	return "", false
}
