package httpapi

import (
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/client"
)

// PassToken passes the token by which a user is known on to the store, where it is remote.
func PassToken(logger *zap.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := bearerToken(r.Header)
		if !ok {
			logger.Warn("Invalid authorization header value, skipping token propagation")
		}
		if token != "" {
			r = r.WithContext(client.WithBearerToken(r.Context(), token))
		}
		next.ServeHTTP(w, r)
	})
}

// bearerToken returns the token of a request, "" for none: the only word of the header, or the one behind `Bearer`. Other ways to prove who
// one is are no tokens. It is false for a header of more words, which says nothing that is known.
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
