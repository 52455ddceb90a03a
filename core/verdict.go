package core

// An Action is what happens to an update; the zero value drops it.
type Action uint8

const (
	Drop   Action = iota // keep only the key that recognises a repeat
	Run                  // answer it at Verdict.Trust
	Hold                 // keep it with Verdict.Request until that is decided
	Forget               // keep nothing (blocked senders)
)

// A Verdict is the gate's decision on one new update. The zero value drops it.
type Verdict struct {
	Action  Action
	Trust   Trust  // with Run: stamped on the stored message, later checks only lower it
	Request string // with Hold: the pairing request that decides
	// Overheard, with Drop, lets a group's bot quote this line later at Trust,
	// which is Stranger for senders without access of their own.
	Overheard bool
}

// An Admission is a Verdict with what the gate found out about the sender, so
// that no one looks it up again for the turn that the update becomes.
type Admission struct {
	Verdict
	User  int64  // 0: none
	Role  Role   // that counts now: a manager without access left is a guest
	Agent string // that answers in the sender's group; "" is the default
	Model string // that answers there too
}
