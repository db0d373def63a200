package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
)

// Status returns the status code of the answer for an error, see [pipeline.HTTPStatus], and sets the header Retry-After, in whole seconds, where
// trying again makes sense.
func Status(h http.Header, err error) int {
	code, after := pipeline.HTTPStatus(err)
	if after > 0 {
		seconds := (after + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	return code
}
