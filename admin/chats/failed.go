package chats

import (
	"context"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/runs"
)

// A failure is why a message has no answer, in the place of the answer.
type failure struct {
	Text   string // in a sentence
	Code   string
	Said   string // by the provider, or the failing part; "" for nothing
	Advice string
	Retry  bool // it can be tried again here
}

// failureOf returns what is known of a failed run, and what to do.
func failureOf(r runs.Line) *failure {
	f := &failure{Text: r.Reason, Code: r.Error, Said: r.Said}
	if f.Text == "" {
		f.Text = "The answer failed."
	}
	f.Advice = runs.Advice(r.Error, r.Setting)
	return f
}

// failures inserts the failed runs of the messages in list after their last message.
// Those of the newest runs without a message here (newest: list ends now) are
// inserted by time. The newest run can be tried again.
func (p *Pages) failures(ctx context.Context, b *chatBody, list []said, newest bool) ([]said, error) {
	var ids []string
	for _, s := range list {
		if s.Run != "" && !slices.Contains(ids, s.Run) {
			ids = append(ids, s.Run)
		}
	}
	failed, err := p.o.Runs.Failed(ctx, ids...)
	if err != nil {
		return list, err
	}
	latest := b.Runs.Value // newest first
	if newest {
		for i := range latest {
			if latest[i].State == "error" && !slices.Contains(ids, latest[i].ID) && (len(list) == 0 || latest[i].Started.After(list[0].At)) {
				failed = append(failed, latest[i].Line)
			}
		}
	}
	for _, r := range failed {
		f := failureOf(r)
		f.Retry = newest && p.o.Retry != nil && !b.Running && len(latest) > 0 && latest[0].ID == r.ID && !b.Detail.Archived
		s := said{ID: "failed-" + r.ID, Who: "failed", Name: "No answer", Model: r.Model, At: r.Ended, Run: r.ID, Fail: f}
		list = slices.Insert(list, placeOf(list, r), s)
	}
	return list, nil
}

// placeOf returns where the end of r belongs in list: after its last message, else by
// time.
func placeOf(list []said, r runs.Line) int {
	for i, s := range slices.Backward(list) {
		if s.Run == r.ID {
			return i + 1
		}
	}
	for i, s := range slices.Backward(list) {
		if !s.At.After(r.Ended) {
			return i + 1
		}
	}
	return 0
}

// why returns a failure in half a sentence.
func why(r runs.Line) string {
	if r.Reason != "" {
		return strings.TrimRight(core.CutRunes(r.Reason, 200), ".!")
	}
	if r.Error != "" {
		return "the run failed (" + r.Error + ")"
	}
	return "the run failed"
}
