package page

import (
	"net/http"
	"strconv"

	"gatehouse/core"
	"gatehouse/web"
)

// Number returns a positive number that is part of the path, or a
// core.NotFound.
func Number(r *http.Request, name string) (int64, error) {
	n, err := strconv.ParseInt(r.PathValue(name), 10, 64)
	if err != nil || n <= 0 {
		return 0, core.Errorf(core.NotFound, "there is no such entry")
	}
	return n, nil
}

// A Choice is one value of a list, and its label.
type Choice struct{ Value, Label string }

// A Fact is a line of a list of properties.
type Fact struct{ What, Is string }

// Cut shortens *rows to n and returns how many it dropped.
func Cut[T any](rows *[]T, n int) int {
	more := max(0, len(*rows)-n)
	*rows = (*rows)[:len(*rows)-more]
	return more
}

// Head returns at most the first n of list.
func Head[T any](list []T, n int) []T { return list[:min(len(list), n)] }

// Slow returns a writer of a large file: each piece has its own time to be
// written.
func Slow(w http.ResponseWriter) http.ResponseWriter { return patient{w} }

type patient struct{ http.ResponseWriter }

func (w patient) Write(b []byte) (int, error) {
	if err := web.Hurry(w.ResponseWriter); err != nil {
		return 0, err
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w patient) Unwrap() http.ResponseWriter { return w.ResponseWriter }
