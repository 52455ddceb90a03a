package orchestrator

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/transcript"
)

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

// kept has what an earlier attempt has transcribed of the turn's message used again.
func (r *run) kept() error {
	if r.t.Attempt == 1 {
		return nil
	}
	past, _, err := r.conv.History(historyBudget)
	if err != nil {
		return err
	}
	for i := range past {
		m := &past[i]
		if !r.speaks(m) && m.UUID != transcript.LineID(r.t.Run, 0) {
			continue
		}
		_, said := m.Shown(r.t.Shared())
		blocks, shown := make([]string, len(said)), make([]string, len(said))
		for k := range said {
			blocks[k], shown[k] = m.Blocks[k].Text, said[k].Text
		}
		r.files.Kept(r.t.Rows, r.t.Session.MessageCount > 0, blocks, shown)
		return nil
	}
	return nil
}

// watch starts the watchdog of the run, until ctx ends. What the turn waited before this attempt does not count.
func (r *run) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	go r.watchdog.Run(ctx, cancel, r.began, r.o.Limits.RunTime, r.o.Limits.Silence)
}

// prepared notes that a model is asked now: its silence counts from here.
func (r *run) prepared() {
	r.o.Metrics.Prepared(r.o.Clock.Now().Sub(r.t.Started))
	r.watchdog.Busy(-1)
}
