package page

import (
	"net/http"
	"strconv"
)

// A Turn is which page of a long list is shown, and links to those beside it.
type Turn struct {
	Label      string // of the links
	Number     int    // from 1
	Prev, Next string // addresses; "" for none

	at func(number int) string
}

// At returns the address of another page of the list.
func (t Turn) At(number int) string { return t.at(number) }

// TurnTo returns the rows of list on the page whose number is r's parameter key, at most per,
// and its Turn. The last page is shown for a higher number. The links keep all other
// parameters and lead to the element with the id anchor; "" is none.
func TurnTo[T any](r *http.Request, list []T, per int, key, anchor, label string) ([]T, Turn) {
	last := max(1, (len(list)+per-1)/per)
	n, _ := strconv.Atoi(r.URL.Query().Get(key))
	t := Turn{Label: label, Number: min(max(n, 1), last)}
	t.at = func(number int) string {
		values := map[string]string{}
		for name, v := range r.URL.Query() {
			values[name] = v[0]
		}
		delete(values, "fragment")
		if values[key] = strconv.Itoa(number); number == 1 {
			delete(values, key)
		}
		if anchor != "" {
			return Address(r.URL.Path, values) + "#" + anchor
		}
		return Address(r.URL.Path, values)
	}
	if t.Number > 1 {
		t.Prev = t.at(t.Number - 1)
	}
	if t.Number < last {
		t.Next = t.at(t.Number + 1)
	}
	return list[(t.Number-1)*per : min(len(list), t.Number*per)], t
}
