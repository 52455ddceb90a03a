// Package seccomp refuses system calls by filters in the kernel: one for programs
// in a Box of package sandbox, one for those behind a Veil.
package seccomp
