package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"gatehouse/cmd/gatehouse/speech"
	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/attach/pdftext"
	"gatehouse/core/store"
	"gatehouse/core/voice"
	"gatehouse/core/voice/hearing"
	"gatehouse/core/voice/pending"
	"gatehouse/core/voice/quota"
)

// pdfs has the text of PDFs taken out in processes of our own program.
func pdfs() (func(context.Context, []byte) (string, int, int, error), error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := pdftext.New(self)
	return func(ctx context.Context, data []byte) (string, int, int, error) {
		t, err := r.Text(ctx, data)
		return t.Text, t.Read, t.Pages, err
	}, nil
}

// voices transcribe recordings.
type voices struct {
	voice   *hearing.Hearer
	hear    func(ctx context.Context, user int64, f core.File, show func(string)) (string, error) // of the vault; nil: none
	quota   *quota.Store
	pending *pending.Store // transcribed later
}

// openVoice builds what transcribes recordings, now and later.
func (a *app) openVoice() error {
	var end func() error
	var err error
	a.quota = quota.New(a.db, a.clock, time.Duration(a.cfg.TranscribeMinutes)*time.Minute)
	a.voice, end, err = speech.Open(speech.Options{Config: a.cfg, Quota: a.quota, Files: a.vault.OpenNoLinks, Box: a.sandbox.Box, Runtime: a.runtime, Log: a.log, Metrics: a.reg})
	a.closing(end)
	if err != nil {
		return err
	}
	if a.voice.On() {
		a.hear = a.voice.Hear
	}
	a.pending = pending.New(pending.Options{DB: a.db, Clock: a.clock, Log: a.log, Journal: a.journal, Hear: a.hear, Chats: pending.Chats{
		May: a.mayTalk, Gone: func(path string) bool {
			_, err := fs.Stat(a.vault.FS(), path)
			return errors.Is(err, fs.ErrNotExist)
		}, Post: a.outbox.Post, Render: func(to core.Address, markdown string) []core.Part { return a.hub.Render(to, markdown) },
		Choose: func(ctx context.Context, tx *store.Tx, choice ask.Ask) error {
			_, err := a.asks.Open(ctx, tx, choice)
			return err
		},
	}})
	a.reg.MustRegister(a.pending.Gauge())
	return nil
}

// retryVoice transcribes the recordings that wait. The fault of the transcription is
// reported to the operator.
func (v *voices) retryVoice(ctx context.Context, progress func(string)) (pending.Report, error) {
	r, err := v.pending.Retry(ctx, progress)
	var fault *voice.Fault
	if errors.As(err, &fault) {
		err = core.Errorf(core.Busy, "%d recordings wait; the transcription fails: %w", r.Waiting, fault)
	}
	return r, err
}
