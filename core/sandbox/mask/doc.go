// Package mask hides files and directories in a mount namespace, by mounting over
// them at every place where they are mounted.
package mask
