package discord

import "container/list"

// An lru keeps at most a fixed number of values by key; the one that was not
// used for longest gives way. It has no lock.
type lru[V any] struct {
	most  int
	items map[string]*list.Element
	order *list.List // of *entry[V], last used first
}

type entry[V any] struct {
	key   string
	value V
}

func newLRU[V any](most int) *lru[V] {
	return &lru[V]{most: most, items: map[string]*list.Element{}, order: list.New()}
}

func (l *lru[V]) get(key string) (v V, ok bool) {
	e, ok := l.items[key]
	if !ok {
		return v, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*entry[V]).value, true
}

func (l *lru[V]) put(key string, v V) {
	if e, ok := l.items[key]; ok {
		e.Value.(*entry[V]).value = v
		l.order.MoveToFront(e)
		return
	}
	if l.order.Len() >= l.most {
		last := l.order.Back()
		delete(l.items, last.Value.(*entry[V]).key)
		l.order.Remove(last)
	}
	l.items[key] = l.order.PushFront(&entry[V]{key, v})
}

func (l *lru[V]) remove(key string) {
	if e, ok := l.items[key]; ok {
		delete(l.items, key)
		l.order.Remove(e)
	}
}
