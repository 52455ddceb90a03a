//go:build !race

package connectorstest

const raceEnabled = false
