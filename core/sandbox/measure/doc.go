// Package measure measures what processes and disks use, from outside, by /proc.
package measure
