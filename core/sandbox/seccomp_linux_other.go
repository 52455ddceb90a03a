//go:build linux && !amd64

package sandbox

// Calls that newer architectures do not have.
var (
	legacyModes []modeCall
	legacyOpens []openCall
)
