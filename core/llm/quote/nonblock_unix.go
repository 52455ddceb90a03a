//go:build unix

package quote

import "syscall"

// nonblock keeps a pipe that took a file's place from stopping the search.
const nonblock = syscall.O_NONBLOCK
