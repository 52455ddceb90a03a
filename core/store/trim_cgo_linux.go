//go:build cgo

package store

/*
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
static void trim(void) { malloc_trim(0); }
#else
static void trim(void) {}
#endif
*/
import "C"

// trim gives the system back what SQLite has freed: glibc keeps it otherwise,
// in an arena for every thread that ever called.
func trim() { C.trim() }
