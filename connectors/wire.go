package connectors

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// A Lenient field of a platform's object is empty when its value is of a form we
// don't know; the object around it is read all the same.
type Lenient[T any] struct{ V T }

// UnmarshalJSON takes anything.
func (l *Lenient[T]) UnmarshalJSON(b []byte) error {
	var v T
	if json.Unmarshal(b, &v) == nil {
		l.V = v
	}
	return nil
}

var errBroken = errors.New("the download was broken off")

// Download copies a platform's answer to w, at most one byte more than most:
// tooLarge tells that there was more. An answer that ends before its announced
// length is an error.
func Download(w io.Writer, resp *http.Response, most int64) (tooLarge bool, err error) {
	n, err := io.Copy(w, io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return false, err
	case n > most:
		return true, nil
	case resp.ContentLength >= 0 && n != resp.ContentLength:
		return false, errBroken
	}
	return false, nil
}
