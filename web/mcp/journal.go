package mcp

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

type journalIn struct {
	Text string `json:"text" jsonschema:"the entry, in Markdown"`
	Date string `json:"date,omitempty" jsonschema:"the day, such as 2026-03-31; today by default"`
	Time string `json:"time,omitempty" jsonschema:"the time of day, such as 22:15; now by default"`
}

type journalOut struct {
	ID   string `json:"id"`
	Date string `json:"date"`
	Time string `json:"time"`
}

func (s *Server) journalAdd(ctx context.Context, c *call, in journalIn) (string, journalOut, error) {
	var out journalOut
	if in.Date == "" {
		now, err := s.o.Now(ctx, c.User)
		if err != nil {
			return "", out, err
		}
		in.Date = now.Format(time.DateOnly)
	}
	body := map[string]string{"text": in.Text}
	if in.Time != "" {
		body["time"] = in.Time
	}
	err := s.ask(ctx, question{method: http.MethodPost, path: []string{"api", "journal", in.Date}, body: body}, &out)
	return fmt.Sprintf("Added to the journal of %s at %s, as entry %s.", out.Date, out.Time, out.ID), out, err
}
