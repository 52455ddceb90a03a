package orchestrator

import (
	"context"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/texts"
)

// fetchTries is how often a file is asked of its platform before the turn goes on
// without it.
const fetchTries = 3

// fetch downloads the turn's files from their platform. A failure is noted in the file,
// and reported at the file's place in the message.
func (r *run) fetch(ctx context.Context) error {
	for i := range r.t.Rows {
		row := &r.t.Rows[i]
		row.Files = slices.Clone(row.Files) // the queue's own stays as it was stored
		for j := range row.Files {
			if j == maxFiles {
				break
			}
			if f := &row.Files[j]; f.Path == "" && f.Ref != "" && f.Refused == "" {
				if err := r.fetchOne(ctx, row.Bot, f); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *run) fetchOne(ctx context.Context, bot string, f *core.File) error {
	if r.o.o.Fetch == nil {
		f.Refused = texts.Text("fetch_nowhere")
		return nil
	}
	for try := 1; ; try++ {
		got, err := r.o.o.Fetch(ctx, r.t.User, bot, *f)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			got.Voice = f.Voice
			*f = got
			return nil
		case core.KindOf(err) != core.Other:
			f.Refused = core.TextOf(err)
			return nil
		}
		r.o.o.Log.Warn("a file could not be fetched", "run", r.t.Run, "bot", bot, "try", try, "err", err)
		if try == fetchTries {
			f.Refused = texts.Text("fetch_failed")
			return nil
		}
		if !core.Sleep(ctx, r.o.o.Clock, time.Duration(try)*time.Second) {
			return context.Cause(ctx)
		}
	}
}

// heardVoice returns the transcription of a voice message, as the user's own text. ok is
// false if it failed, which is reported like a file that is not read.
func (r *run) heardVoice(ctx context.Context, f core.File) (said core.Block, ok bool) {
	if r.o.o.Hear == nil {
		return core.Block{}, false
	}
	text, err := r.o.o.Hear(ctx, f)
	if text = strings.TrimSpace(text); err == nil && text != "" {
		return core.Block{Type: "text", Text: text}, true
	}
	why := texts.Text("voice_silent")
	if err != nil {
		r.o.o.Log.Warn("a voice message could not be transcribed", "run", r.t.Run, "err", err)
		why = texts.Text("voice_service")
	}
	return r.unread(texts.Text("voice_not_understood", texts.With{"Why": why, "Path": f.Path})), true
}

// about adds before a row's text the message that it refers to, marked as data: its
// author, if known, and each line with "> ".
func (r *run) about(row *core.Inbound, words string) string {
	q := row.Quote
	switch {
	case q == nil:
		return words
	case q.Forwarded:
		said := "Forwarded, not written by the sender of this message:\n" + agent.Quoted{Name: q.Name, Label: "elsewhere", Text: row.Text}.String()
		if row.Group() {
			said = agent.SafeName(row.From.Name) + " has forwarded this. " + said
		}
		return said
	case q.Ours:
		return "About this passage of yours:\n" + agent.Quoted{Name: "you", Label: "earlier", Text: q.Text}.String() + "\n" + words
	}
	if q.Root && r.t.Session.MessageCount > 0 { // the conversation knows it
		return words
	}
	if q.Root {
		return "In a thread that began with this:\n" + agent.Quoted{Name: q.Name, Label: "earlier", Text: q.Text}.String() + "\n" + words
	}
	return "In answer to this:\n" + agent.Quoted{Name: q.Name, Label: "earlier", Text: q.Text}.String() + "\n" + words
}
