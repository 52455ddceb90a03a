package connectors

import (
	"container/list"
	"iter"
)

// An LRU is a map with a maximum size that evicts the least recently used value.
// It is not safe for concurrent use.
type LRU[K comparable, V any] struct {
	most  int
	items map[K]*list.Element
	order *list.List // of *entry[K, V], last used first
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// NewLRU returns an LRU of at most a number of values.
func NewLRU[K comparable, V any](most int) *LRU[K, V] {
	return &LRU[K, V]{most: most, items: map[K]*list.Element{}, order: list.New()}
}

// Get returns the value of a key, and marks it as used.
func (l *LRU[K, V]) Get(key K) (v V, ok bool) {
	e, ok := l.items[key]
	if !ok {
		return v, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*entry[K, V]).value, true
}

// Put sets the value of a key.
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

// Len returns the number of keys.
func (l *LRU[K, V]) Len() int { return len(l.items) }

// All returns the keys and values, most recently used first.
func (l *LRU[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for e := l.order.Front(); e != nil; e = e.Next() {
			if at := e.Value.(*entry[K, V]); !yield(at.key, at.value) {
				return
			}
		}
	}
}

// Remove deletes a key.
func (l *LRU[K, V]) Remove(key K) {
	if e, ok := l.items[key]; ok {
		delete(l.items, key)
		l.order.Remove(e)
	}
}
