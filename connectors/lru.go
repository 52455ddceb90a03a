package connectors

import (
	"container/list"
	"iter"
)

// An LRU keeps at most a fixed number of values by key; the one that was not
// used for longest gives way. It has no lock.
type LRU[K comparable, V any] struct {
	most  int
	items map[K]*list.Element
	order *list.List // of *entry[K, V], last used first
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// NewLRU keeps at most so many.
func NewLRU[K comparable, V any](most int) *LRU[K, V] {
	return &LRU[K, V]{most: most, items: map[K]*list.Element{}, order: list.New()}
}

// Get is the value of a key, which is used by that.
func (l *LRU[K, V]) Get(key K) (v V, ok bool) {
	e, ok := l.items[key]
	if !ok {
		return v, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*entry[K, V]).value, true
}

// Put gives a key a value.
func (l *LRU[K, V]) Put(key K, v V) {
	if e, ok := l.items[key]; ok {
		e.Value.(*entry[K, V]).value = v
		l.order.MoveToFront(e)
		return
	}
	if l.order.Len() >= l.most {
		last := l.order.Back()
		delete(l.items, last.Value.(*entry[K, V]).key)
		l.order.Remove(last)
	}
	l.items[key] = l.order.PushFront(&entry[K, V]{key, v})
}

// Len is how many keys there are.
func (l *LRU[K, V]) Len() int { return len(l.items) }

// All are the keys with their values, last used first.
func (l *LRU[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for e := l.order.Front(); e != nil; e = e.Next() {
			if at := e.Value.(*entry[K, V]); !yield(at.key, at.value) {
				return
			}
		}
	}
}

// Remove forgets a key.
func (l *LRU[K, V]) Remove(key K) {
	if e, ok := l.items[key]; ok {
		delete(l.items, key)
		l.order.Remove(e)
	}
}
