package orchestrator

import "gatehouse/core"

// begin emits the event that names the session, once.
func (r *run) begin() {
	if r.begun {
		return
	}
	r.begun = true
	info := r.resume.Info
	if info.Method == "" { // refused before the history was read
		info = core.ResumeInfo{Method: "new", IsNewSession: r.t.Session.MessageCount == 0, PreviousMessageCount: r.t.Session.MessageCount}
	}
	r.emit(core.Session{ID: r.t.Session.ID, RunID: r.t.Run, Title: r.title(), CreatedAt: r.t.Session.CreatedAt,
		TrustLevel: r.t.Trust, WorkingDirectory: r.place(), ResumeInfo: info})
}

// place returns where the turn works, relative to the vault, "" for the vault.
func (r *run) place() string {
	switch dir := &r.t.Dir; {
	case dir.Path == "": // refused before it was known
		return r.t.Session.WorkingDirectory
	case dir.Rel == ".":
		return ""
	case dir.Inside:
		return dir.Rel
	default:
		return dir.Path
	}
}
