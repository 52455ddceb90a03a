//go:build !unix

package quote

const nonblock = 0
