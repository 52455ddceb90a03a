package page

import (
	"net/http"
	"strconv"
)

// A Pager is which page of a long list is shown, and links to those beside it.
type Pager struct {
	Label      string // of the links
	Number     int    // from 1
	Prev, Next string // addresses; "" for none

	at func(number int) string
}

// At returns the address of another page of the list.
func (p Pager) At(number int) string { return p.at(number) }

// Paginate returns the rows of list on the page whose number is r's parameter key, at most per,
// and its Pager. The last page is shown for a higher number. The links keep all other
// parameters and lead to the element with the id anchor; "" is none.
func Paginate[T any](r *http.Request, list []T, per int, key, anchor, label string) ([]T, Pager) {
	last := max(1, (len(list)+per-1)/per)
	n, _ := strconv.Atoi(r.URL.Query().Get(key))
	p := Pager{Label: label, Number: min(max(n, 1), last)}
	p.at = func(number int) string {
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
	if p.Number > 1 {
		p.Prev = p.at(p.Number - 1)
	}
	if p.Number < last {
		p.Next = p.at(p.Number + 1)
	}
	return list[(p.Number-1)*per : min(len(list), p.Number*per)], p
}
