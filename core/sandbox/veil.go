package sandbox

// A Cover lists what a Veil hides. Paths are absolute, clean and without links;
// what does not exist is skipped.
type Cover struct {
	// Hidden are files and directories that cannot be read, written, renamed or
	// linked behind the veil, under this or any other name they are mounted at.
	Hidden []string
	// Open are directories directly inside a hidden directory that remain as they are.
	Open []string
}

// VeilName is the name of a Veil in what Probe and doctor list.
const VeilName = "own files"

// The texts for a Veil that works, and for one that does not.
const (
	veilWorks = "hidden from commands at full trust, and so is the gateway's process (bubblewrap)"
	veilFails = "not hidden from commands at full trust, which are asked for when they name one of them: "
)
