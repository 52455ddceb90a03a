package reindex

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"

	"gatehouse/core/session"
	"gatehouse/core/session/sidecar"
	"gatehouse/core/transcript"
	"gatehouse/core/vault"
)

// Find returns the session of a conversation that Claude Code's command line began,
// as its transcript in the vault reports it: without an owner, with the title
// that the command line shows. It returns false for every other file, and unless
// known for a session that has a sidecar: the gateway knew that one. If known, it
// returns false while the newest message is the gateway's, which counts its own.
func Find(sessions *session.Store, v *vault.Vault, log *slog.Logger, name, id string, known bool) (session.Session, bool) {
	r := &reindex{o: Options{Vault: v, Sessions: sessions, Log: log}, files: sidecar.New(v, log)}
	f, ok := r.look(name, id)
	if !ok || !known && f.side != nil || known && f.mine || !f.cli || f.count == 0 {
		return session.Session{}, false
	}
	return r.report(f), true
}

// Describe returns the session of a conversation as its transcript in the vault reports it, whoever
// wrote it, and whether Claude Code's command line began it; the gateway began, or imported, the
// others. It returns false for ok for a file without messages of the session id.
func Describe(sessions *session.Store, v *vault.Vault, log *slog.Logger, name, id string) (sess session.Session, cli, ok bool) {
	r := &reindex{o: Options{Vault: v, Sessions: sessions, Log: log}, files: sidecar.New(v, log)}
	f, ok := r.look(name, id)
	if !ok || !f.formed || f.count == 0 {
		return session.Session{}, false, false
	}
	return r.report(f), f.cli, true
}

// report returns the row of a transcript, of which no sidecar counts.
func (r *reindex) report(f finding) session.Session {
	f.side = nil
	sess := f.session(r.o.Vault.Path())
	if given, err := titleOf(r.o.Vault, f.name, f.lines); err != nil {
		r.o.Log.Warn("the title of a transcript", "file", f.name, "err", err)
	} else if given != "" {
		sess.Title = session.Title(given)
	}
	return sess
}

// titleLine is a line of a transcript that names the conversation.
type titleLine struct {
	Type    string `json:"type"`
	Summary string `json:"summary"`
	Leaf    string `json:"leafUuid"` // the line that the summary is of
	AI      string `json:"aiTitle"`
	Custom  string `json:"customTitle"`
}

// titleOf returns the title that the command line has written into a transcript's
// last vault.MaxTail bytes: the user's, a model's, or the last summary of one of
// the conversation's own lines.
func titleOf(v *vault.Vault, name string, own map[string]bool) (string, error) {
	f, err := v.Root().Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil {
		_, err = f.Seek(max(0, st.Size()-vault.MaxTail), io.SeekStart)
	}
	if err != nil {
		return "", err
	}
	var custom, ai, summary string
	for in := bufio.NewReader(io.LimitReader(f, vault.MaxTail)); ; {
		raw, err := in.ReadBytes('\n')
		var l titleLine
		if (bytes.Contains(raw, []byte(`"summary"`)) || bytes.Contains(raw, []byte(`-title"`))) && json.Unmarshal(raw, &l) == nil {
			switch l.Type {
			case "summary":
				if own[l.Leaf] {
					summary = l.Summary
				}
			case "ai-title":
				ai = l.AI
			case "custom-title":
				custom = l.Custom
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
	}
	for _, title := range []string{custom, ai, summary} {
		if title = transcript.OneLine(title); title != "" {
			return title, nil
		}
	}
	return "", nil
}

// isAside reports whether a user's text is the command line's own: a command that
// it ran, or a note on one.
func isAside(text string) bool {
	return strings.HasPrefix(text, "<command-") || strings.HasPrefix(text, "<local-command-") || strings.HasPrefix(text, "Caveat: ")
}
