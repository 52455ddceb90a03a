package connectors

import "iter"

// An LRU is a map with a maximum size that evicts the least recently used value.
// It is not safe for concurrent use. Values lie in one block: objects of their own,
// made in the course of a load, would each keep a page of garbage in memory.
type LRU[K comparable, V any] struct {
	most  int
	items map[K]int32  // indexes of nodes
	nodes []node[K, V] // a ring: the first is no value, but between last and least recently used
	free  int32        // the first of removed nodes, linked by next; 0 for none
}

type node[K comparable, V any] struct {
	key        K
	value      V
	prev, next int32 // used before and after it
}

// NewLRU returns an LRU of at most a number of values.
func NewLRU[K comparable, V any](most int) *LRU[K, V] {
	return &LRU[K, V]{most: most, items: map[K]int32{}, nodes: make([]node[K, V], 1)}
}

// Get returns the value of a key, and marks it as used.
func (l *LRU[K, V]) Get(key K) (v V, ok bool) {
	if at := l.use(key); at != nil {
		return *at, true
	}
	return v, false
}

// use marks a key as used and returns where its value is until the next Put; nil for
// none.
func (l *LRU[K, V]) use(key K) *V {
	i, ok := l.items[key]
	if !ok {
		return nil
	}
	l.unlink(i)
	l.link(i)
	return &l.nodes[i].value
}

// Put sets the value of a key.
func (l *LRU[K, V]) Put(key K, v V) {
	if at := l.use(key); at != nil {
		*at = v
		return
	}
	if len(l.items) >= l.most {
		l.Remove(l.nodes[l.nodes[0].next].key)
	}
	i := l.free
	if i > 0 {
		l.free = l.nodes[i].next
	} else {
		i = int32(len(l.nodes))
		l.nodes = append(l.nodes, node[K, V]{})
	}
	l.nodes[i].key, l.nodes[i].value = key, v
	l.items[key] = i
	l.link(i)
}

// link makes a node that is in no ring the one that was used last.
func (l *LRU[K, V]) link(i int32) {
	last := l.nodes[0].prev
	l.nodes[i].prev, l.nodes[i].next = last, 0
	l.nodes[last].next, l.nodes[0].prev = i, i
}

func (l *LRU[K, V]) unlink(i int32) {
	prev, next := l.nodes[i].prev, l.nodes[i].next
	l.nodes[prev].next, l.nodes[next].prev = next, prev
}

// Len returns the number of keys.
func (l *LRU[K, V]) Len() int { return len(l.items) }

// All returns the keys and values, most recently used first. The LRU must not change
// before the last.
func (l *LRU[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for i := l.nodes[0].prev; i != 0; i = l.nodes[i].prev {
			if !yield(l.nodes[i].key, l.nodes[i].value) {
				return
			}
		}
	}
}

// Remove deletes a key.
func (l *LRU[K, V]) Remove(key K) {
	i, ok := l.items[key]
	if !ok {
		return
	}
	delete(l.items, key)
	l.unlink(i)
	l.nodes[i] = node[K, V]{next: l.free}
	l.free = i
}
