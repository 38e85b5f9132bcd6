package api

import "net/http"

// A recorder remembers what was answered, and whether it could be.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	failed error // of the first write that did
}

// WriteHeader counts once: a status that follows a failed write is for nobody.
func (r *recorder) WriteHeader(status int) {
	if r.status != 0 {
		return
	}
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	if r.failed == nil {
		r.failed = err
	}
	return n, err
}

// Unwrap lets a response controller reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// discard takes an answer that nobody is to get.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}
