package incoming

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/attach/content"
	"gatehouse/core/texts"
	"gatehouse/core/voice"
)

// fetchTries is how often a file is asked of its platform in one attempt.
const fetchTries = 3

// FetchAll downloads the files of rows from their platform. A refusal is noted in the file,
// and reported at the file's place in the message; so is a failure in the last attempt, which
// is an error before. A file of a message that rows refer to is left out if rows have it already.
func (r *Reader) FetchAll(ctx context.Context, rows []core.Inbound) error {
	have := map[string]bool{}
	for i := range rows {
		for _, f := range rows[i].Files {
			have[f.Ref] = have[f.Ref] || f.Ref != "" && !f.Quoted
		}
	}
	for i := range rows {
		row := &rows[i]
		row.Files = slices.DeleteFunc(slices.Clone(row.Files), func(f core.File) bool { // the queue's own stays as it was stored
			again := f.Quoted && have[f.Ref]
			have[f.Ref] = f.Ref != ""
			return again
		})
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

func (r *Reader) fetchOne(ctx context.Context, bot string, f *core.File) error {
	if r.Fetch == nil {
		f.Refused = texts.Text("fetch_nowhere")
		return nil
	}
	for try := 1; ; try++ {
		got, err := r.Fetch(ctx, r.User, r.Run, bot, *f)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			got.Voice, got.Quoted = f.Voice, f.Quoted
			*f = got
			return nil
		case core.KindOf(err) != core.Other:
			f.Refused = core.TextOf(err)
			return nil
		}
		r.Log.Warn("a file could not be fetched", "run", r.Run, "bot", bot, "try", try, "err", err)
		if try == fetchTries && !r.Last {
			return fmt.Errorf("fetch a file of a message: %w", err)
		}
		if try == fetchTries {
			f.Refused = texts.Text("fetch_failed")
			return nil
		}
		if !core.Sleep(ctx, r.Clock, time.Duration(try)*time.Second) {
			return context.Cause(ctx)
		}
	}
}

// audioEndings are the formats that transcription services take; a file that is none of
// these is given as any other file.
var audioEndings = []string{".flac", ".m4a", ".mp3", ".mpga", ".oga", ".ogg", ".opus", ".wav"}

// audio reports whether the sender declared a file as audio, by its type or ending.
func audio(f core.File) bool {
	return strings.HasPrefix(f.Type, "audio/") || slices.Contains(audioEndings, strings.ToLower(path.Ext(f.Name)))
}

// heardFile returns the transcription of an audio file as the text of an attached file: who
// speaks in it is not known. ok is false where nothing is transcribed, or it is not among the
// attachments; a failure is reported like a file that is not read.
func (r *Reader) heardFile(ctx context.Context, name string, f core.File) (block core.Block, ok bool) {
	if r.Hear == nil || !strings.HasPrefix(f.Path, attachments) || !fs.ValidPath(f.Path) {
		return core.Block{}, false
	}
	was := r.transcribed(ctx, f)
	if was.fault != "" {
		return r.unread(texts.Text("audio_not_understood", texts.With{"Name": name, "Why": whyOf(was.fault, false), "Path": f.Path})), true
	}
	r.read(f.Path, was.text, 0, len(was.text) > maxTextFile)
	return core.Block{Type: "text", Text: content.InMessage(name+" (the transcription of the audio file)", was.text, maxTextFile)}, true
}

// An Unheard is a voice message without a text, and what it came with.
type Unheard struct {
	In   *core.Inbound
	File core.File
}

// heardVoice returns the transcription of a voice message, as Text returns a text of its
// sender. ok is false if nothing is transcribed; a failure is reported like a file that is
// not read, and whether the text comes later.
func (r *Reader) heardVoice(ctx context.Context, in *core.Inbound, f core.File) (said core.Block, ok bool) {
	if r.Hear == nil {
		return core.Block{}, false
	}
	was := r.transcribed(ctx, f)
	switch {
	case was.note != "":
		if waits(was.note) && r.Waits != nil {
			r.Unheard = append(r.Unheard, Unheard{in, f})
		}
		return r.unread(was.note), true
	case was.fault == "":
		r.read(f.Path, was.text, 0, false)
		return r.said(in, was.text), true
	// Answered later, a forwarded text would be the sender's own.
	case r.Waits != nil && !in.Forwarded() && (&voice.Fault{Code: was.fault}).Passes() && r.Waits(ctx, len(r.Unheard)+1):
		r.Unheard = append(r.Unheard, Unheard{in, f})
		return r.unread(texts.Text("voice_waits", texts.With{"Why": whyOf(was.fault, true), "Path": f.Path})), true
	}
	return r.unread(texts.Text("voice_not_understood", texts.With{"Why": whyOf(was.fault, false), "Path": f.Path})), true
}

// said returns the text of a voice message that came with in. Text of in, if the model reads
// it, has the message that in refers to.
func (r *Reader) said(in *core.Inbound, text string) core.Block {
	row := *in
	if row.Text = text; Says(in, r.Begun) && !in.Forwarded() {
		row.Quote = nil
	}
	block := Text(&row, r.Trust, r.Begun)
	if r.Wrote != nil {
		r.Wrote(block, text, Referred(&row, r.Begun))
	}
	return core.Block{Type: "text", Text: block}
}

// Spoken returns what the user said in the voice messages of rows, a blank line between; ""
// for nothing. Blocks uses the same transcription. Messages that are repeated are left out.
func (r *Reader) Spoken(ctx context.Context, rows []core.Inbound) string {
	if r.Hear == nil {
		return ""
	}
	var said []string
	files := 0
	for i := range rows {
		for _, f := range rows[i].Files {
			if files++; files > maxFiles || !f.Voice || f.Refused != "" || rows[i].Again != "" {
				continue
			}
			was := r.transcribed(ctx, f)
			r.found(f, was)
			if was.text != "" {
				said = append(said, was.text)
			}
		}
	}
	return strings.Join(said, "\n\n")
}

// silent is the code of a recording without speech.
const silent = "silent"

// transcribed returns the text of a recording, or the code of why there is none.
func (r *Reader) transcribed(ctx context.Context, f core.File) heard {
	if was, ok := r.heard[f.Path]; ok && f.Voice {
		return was
	}
	text, err := r.Hear(ctx, r.User, f, r.Heard)
	if text = strings.TrimSpace(text); err == nil && text != "" {
		return heard{text: text}
	}
	if err == nil {
		return heard{fault: silent}
	}
	r.Log.Warn("a recording could not be transcribed", "run", r.Run, "err", err)
	if of, ok := errors.AsType[*voice.Fault](err); ok {
		return heard{fault: of.Code}
	}
	return heard{fault: voice.FaultEngine}
}

func (r *Reader) found(f core.File, was heard) {
	if r.heard == nil {
		r.heard = map[string]heard{}
	}
	r.heard[f.Path] = was
}

// whyOf returns a code as text. waits: the recording is transcribed later.
func whyOf(fault string, waits bool) string {
	if fault == silent {
		return texts.Text("voice_silent")
	}
	return texts.Text("voice_service", texts.With{"Code": fault, "Waits": waits})
}
