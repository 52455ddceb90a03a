//go:build cgo

package cmemory

/*
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
static void trim(void) { malloc_trim(0); }

// One arena for all threads, from the program's start on. With one for each thread that
// ever called SQLite, a burst leaves some twenty, whose free ends malloc_trim does not
// return. There are few connections, so threads hardly wait for the arena.
__attribute__((constructor)) static void oneArena(void) { mallopt(M_ARENA_MAX, 1); }
#else
static void trim(void) {}
#endif
*/
import "C"

// Trim gives the system back what SQLite has freed: glibc keeps it otherwise.
func Trim() { C.trim() }
