package orchestrator

import (
	"context"
	"strings"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/texts"
	"gatehouse/core/transcript"
)

// maxQuoted bounds how much of a refused message is repeated to its sender, in bytes.
const maxQuoted = 60

// turnedDown ends a run whose newest message the provider refused. The message is marked
// in the transcript, so that later turns leave it out, and the error for its sender names it.
func (r *run) turnedDown(t *talk, f *llm.Fault) (Result, error) {
	r.logFailure(f)
	told := *f
	told.Text = texts.Text("provider_refused", texts.With{"What": r.quoted(), "Long": f.Code == llm.CodeTooLong})
	if t.worked {
		told.Text = texts.Text("provider_refused_result")
	}
	if err := r.conv.Refuse(r.t.Run, told.Text); err != nil {
		return Result{}, err
	}
	return r.end(t.text, &told)
}

// refusedBefore ends a run whose earlier attempt was refused, and ended before that was
// stored.
func (r *run) refusedBefore() (Result, error) {
	return r.failed("", &llm.Fault{Code: llm.CodeBadRequest, Text: texts.Text("provider_refused", texts.With{"What": r.quoted(), "Long": false})})
}

// quoted returns the beginning of the turn's message in one line, without markup, or the
// name of its first file.
func (r *run) quoted() string {
	text := r.t.Text()
	for _, row := range r.t.Rows {
		for _, f := range row.Files {
			if strings.TrimSpace(text) == "" {
				text = f.Name
			}
		}
	}
	text = strings.Map(func(c rune) rune {
		if strings.ContainsRune("*_`[]<>~|\\#", c) {
			return -1
		}
		return c
	}, text)
	return core.CutRunes(transcript.OneLine(text), maxQuoted)
}

// request asks the model, once more after the provider refused the conversation as too
// long and it was made shorter.
func (t *talk) request(ctx context.Context) (transcript.Message, *llm.Fault, error) {
	m, fault, err := t.ask(ctx)
	if err != nil || fault == nil || fault.Code != llm.CodeTooLong || len(m.Blocks) > 0 || ctx.Err() != nil {
		return m, fault, err
	}
	if shorter, err := t.squeeze(ctx, fault); err != nil || !shorter || ctx.Err() != nil {
		return m, fault, err
	}
	return t.ask(ctx)
}
