package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors/discord/gateway"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

// Events that no one person sent: bots, webhooks, the platform's own account,
// and message types that announce an event (Discord: Message Types, all but
// DEFAULT and REPLY).
func TestInbound_WhatNoPersonSentIsMarked(t *testing.T) {
	c := newClub(t)
	decode := func(kind, data string) core.Inbound {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		in, _, err := c.bot.decoder.Decode(ctx, gateway.Event{Type: kind, Data: json.RawMessage(data)}, "s")
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	message := func(fields string) string {
		return fmt.Sprintf(`{"id":"1234567890123456789","channel_id":"%s","guild_id":"%s","content":"hello","timestamp":"2026-01-01T00:00:00Z",%s}`, c.talk, c.guild.ID(), fields)
	}
	for _, author := range []string{`"id":"77","username":"b","bot":true`, `"id":"77","username":"s","system":true`, `"id":"643945264868098049","username":"Discord"`, `"id":"0","username":"z"`, `"id":"-7","username":"n"`} {
		if in := decode("MESSAGE_CREATE", message(`"author":{`+author+`}`)); in.From.Person() {
			t.Errorf("%s is a person: %+v", author, in.From)
		}
		if in := decode("MESSAGE_REACTION_ADD", fmt.Sprintf(`{"user_id":"x","channel_id":"%s","message_id":"5","emoji":{"name":"a"},"member":{"user":{%s}}}`, c.talk, author)); in.Kind == core.KindMessage {
			t.Errorf("%+v", in)
		}
	}
	if in := decode("MESSAGE_CREATE", message(`"author":{"id":"77","username":"w"},"webhook_id":"99"`)); in.From.Person() {
		t.Errorf("a webhook is a person: %+v", in.From)
	}
	for kind := range 60 {
		in := decode("MESSAGE_CREATE", message(fmt.Sprintf(`"author":{"id":"77","username":"ada"},"type":%d`, kind)))
		person := kind == wire.TypeDefault || kind == wire.TypeReply
		if (in.Kind == core.KindService) == person || person != (in.Text != "" && !strings.HasPrefix(in.Text, "message type")) {
			t.Errorf("type %d is a %s, %q", kind, in.Kind, in.Text)
		}
	}
}
