package connectors

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// A Lenient field of a platform's object is empty if its value has an unknown type;
// the rest of the object is decoded.
type Lenient[T any] struct{ V T }

// UnmarshalJSON accepts any value.
func (l *Lenient[T]) UnmarshalJSON(b []byte) error {
	var v T
	if json.Unmarshal(b, &v) == nil {
		l.V = v
	}
	return nil
}

var errBroken = errors.New("the download was broken off")

// Download copies at most most+1 bytes of a platform's answer to w. tooLarge
// reports whether there were more than most. An answer that ends before its
// announced length is an error.
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
