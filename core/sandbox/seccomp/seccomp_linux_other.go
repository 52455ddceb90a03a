//go:build linux && !amd64

package seccomp

// refusedHere are calls to refuse that only this architecture has.
var refusedHere []uint32

// Calls that newer architectures do not have.
var (
	legacyModes []modeCall
	legacyOpens []openCall
)
