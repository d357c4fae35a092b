package serve

import (
	"net/http"
	"time"
)

// readTime is how long a client may take to read an answer.
const readTime = 60 * time.Second

// LimitTime bounds what a slow client can hold: how long its body may take, and how
// long it may take to read the answer once that begins, which is within work. The
// deadline of a body that is not read to its end stays, so that discarding the rest is
// bounded, too.
func LimitTime(next http.Handler, body, work time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if r.ContentLength != 0 {
			_ = control.SetReadDeadline(time.Now().Add(body)) // not possible on a test recorder only
		}
		_ = control.SetWriteDeadline(time.Now().Add(work + readTime)) // a nearer one when the answer begins
		next.ServeHTTP(&timedAnswer{ResponseWriter: w}, r)
	})
}

// timedAnswer gives the client a bounded time to take the answer.
type timedAnswer struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader implements http.ResponseWriter.
func (w *timedAnswer) WriteHeader(status int) {
	if !w.begun && status >= http.StatusOK {
		w.begun = true
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(readTime)) // not possible on a test recorder only
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *timedAnswer) Write(data []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap serves http.ResponseController.
func (w *timedAnswer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
