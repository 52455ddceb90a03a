package page

import (
	"context"

	"gatehouse/web/auth"
)

// An Item is a page in the menu.
type Item struct {
	Key   string // the name of its template, or View.In of pages below it
	Path  string
	Label string
	// Count returns how much on the page needs attention; nil: nothing ever
	// does. A source that fails counts nothing: the page shows the fault.
	Count  func(ctx context.Context) int
	Words  string // what is counted, for screen readers
	Urgent bool   // what is counted is a fault
	NoView bool   // viewers may not open it, so they do not see it
}

// List adds pages to the menu, in this order.
func (f *Frame) List(items ...Item) { f.items = append(f.items, items...) }

// Below adds a page that is reached from the one of the menu with this key. The menu does not
// show it, the command palette finds it.
func (f *Frame) Below(key string, item Item) { f.below[key] = append(f.below[key], item) }

// Personal adds pages to the menu behind the account's name, in this order.
func (f *Frame) Personal(items ...Item) { f.personal = append(f.personal, items...) }

// An entry is an item as the menu shows it. Count is hidden when it is 0.
type entry struct {
	Item
	Count   int
	Current bool
	Far     bool // on a phone it is behind More
	Below   []Item
}

// menu returns the entries with their counts.
func (f *Frame) menu(ctx context.Context, current string) []entry {
	who, _ := auth.From(ctx)
	m := make([]entry, 0, len(f.items))
	for i, item := range f.items {
		if item.NoView && who.Viewer {
			continue
		}
		e := entry{Item: item, Current: item.Key == current, Far: len(f.items) > nearPages+1 && i >= nearPages}
		for _, b := range f.below[item.Key] {
			if !b.NoView || !who.Viewer {
				e.Below = append(e.Below, b)
			}
		}
		if item.Count != nil {
			e.Count = item.Count(ctx)
		}
		m = append(m, e)
	}
	return m
}

// nearPages are shown next to More on a phone.
const nearPages = 4

// more returns the entry that replaces those that are far.
func more(menu []entry) (m entry) {
	for _, e := range menu {
		if e.Far {
			m.Label = "More"
			m.Count += e.Count
			m.Urgent = m.Urgent || e.Urgent && e.Count > 0
			m.Current = m.Current || e.Current
		}
	}
	return m
}
