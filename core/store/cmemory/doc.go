// Package cmemory is about the heap of the C library, from which SQLite has its memory.
package cmemory
