package main

import (
	"context"
	"os"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/attach/pdftext"
	"gatehouse/core/llm/transcribe"
	"gatehouse/core/vault"
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

// hearing has voice messages written down, where a server for it is
// configured. It gets the OpenAI key only where it is the same server.
func hearing(cfg *configs.Config, v *vault.Vault) (hear func(context.Context, core.File) (string, error), end func() error, err error) {
	end = func() error { return nil }
	if cfg.TranscribeURL == "" {
		return nil, end, nil
	}
	key := ""
	if cfg.SameServer(cfg.TranscribeURL) {
		key = cfg.OpenaiAPIKey.Reveal()
	}
	c, err := transcribe.New(cfg.TranscribeURL, key)
	if err != nil {
		return nil, end, err
	}
	return func(ctx context.Context, f core.File) (string, error) {
		r, err := v.OpenNoLinks(f.Path)
		if err != nil {
			return "", err
		}
		defer r.Close()
		return c.Text(ctx, f.Name, r)
	}, c.Close, nil
}
