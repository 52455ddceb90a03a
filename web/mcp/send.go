package mcp

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"gatehouse/core"
)

type sendIn struct {
	Text string `json:"text" jsonschema:"the message, in Markdown"`
	Chat string `json:"chat,omitempty" jsonschema:"the chat's id as the platform has it; owner, the owner's own chat with the bot, by default"`
	Bot  string `json:"bot,omitempty" jsonschema:"the bot that sends it; not needed if there is only one"`
	Once string `json:"once,omitempty" jsonschema:"a name of your own for this message: a repeat with the same one is not sent again"`
}

type sendOut struct {
	ID     string `json:"id"`
	Bot    string `json:"bot"`
	Chat   string `json:"chat"`
	Status string `json:"status" jsonschema:"queued, sending, sent, unknown or failed"`
}

func (s *Server) sendMessage(ctx context.Context, c *call, in sendIn) (string, sendOut, error) {
	var out sendOut
	if in.Bot == "" {
		names := s.o.Bots()
		switch {
		case len(names) == 0:
			return "", out, core.Errorf(core.NotFound, "no bot is configured")
		case len(names) == 1:
			in.Bot = names[0]
		case !c.Governs():
			return "", out, core.Errorf(core.Invalid, "name the bot: there are several")
		default:
			return "", out, core.Errorf(core.Invalid, "name the bot: %s", strings.Join(names, ", "))
		}
	}
	q := question{method: http.MethodPost, path: []string{"api", "bots", in.Bot, "messages"}, body: map[string]string{"chat": cmp.Or(in.Chat, "owner"), "text": in.Text}}
	if in.Once != "" {
		q.header = map[string]string{"Idempotency-Key": in.Once}
	}
	err := s.ask(ctx, q, &out)
	return fmt.Sprintf("The message %s to the chat %s of the bot %s is %s.", out.ID, line(out.Chat, 130), out.Bot, out.Status), out, err
}
