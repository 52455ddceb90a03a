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

// A VeilTrial is what TryVeil has seen of this machine.
type VeilTrial struct {
	veil *Veil // nil: none can be made, for the reason in b
	b    Backend
}

// VeilName is the name of a Veil in what Probe and doctor list.
const VeilName = "own files"

// The texts for a Veil that works, and for one that does not.
const (
	veilWorks = "hidden from commands at full trust, and so is the gateway's process (bubblewrap)"
	veilFails = "not hidden from commands at full trust, which are asked for when they name one of them: "
)

func noVeil(why, fix string) VeilTrial {
	return VeilTrial{b: Backend{Name: VeilName, Text: veilFails + why, Fix: fix}}
}

// ProbeVeil reports whether the gateway's own files can be hidden at full trust
// on this machine, for doctor and panel.
func ProbeVeil() Backend { return TryVeil(Auto).b }
