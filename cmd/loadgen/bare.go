package main

import (
	"context"
	"errors"
	"sync"

	"gatehouse/cmd/loadgen/bare"
)

// bareCmd is the floor: it serves each platform that it is given a token for.
type bareCmd struct {
	TelegramURL   string `name:"telegram-url" env:"LOADGEN_TELEGRAM_API_URL"`
	TelegramToken string `name:"telegram-token" env:"LOADGEN_TELEGRAM_TOKEN"`
	DiscordURL    string `name:"discord-url" env:"LOADGEN_DISCORD_API_URL"`
	DiscordToken  string `name:"discord-token" env:"LOADGEN_DISCORD_TOKEN"`
	ModelURL      string `name:"model-url" env:"LOADGEN_MODEL_URL" help:"Base URL of the model that is asked for each answer; none without it."`
}

// Run serves until a platform or the parent goes.
func (c *bareCmd) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	model := bare.NewModel(c.ModelURL)
	serve := func(bot func(ctx context.Context, url, token string, m *bare.Model) error, url, token string) {
		if token != "" {
			all.Go(func() { cancel(bot(ctx, url, token, model)) })
		}
	}
	serve(bare.Telegram, c.TelegramURL, c.TelegramToken)
	serve(bare.Discord, c.DiscordURL, c.DiscordToken)
	all.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
