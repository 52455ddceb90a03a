// Package landlock restricts which files a thread, and the program it becomes, can
// open, by Landlock of the kernel.
package landlock
