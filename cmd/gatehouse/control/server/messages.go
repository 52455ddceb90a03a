package server

import (
	"bytes"
	"context"
	"net/http"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/api/bots"
	"gatehouse/web/upload"
)

// maxMessage limits the body of a message: the longest text, as JSON may write
// it, and its files.
const maxMessage = 1<<20 + upload.MaxFiles/3*4

// send serves POST /control/messages. Unlike the API's endpoint it needs no
// bot's name, and takes any name of the caller's for the message.
func (s *server) send(w http.ResponseWriter, r *http.Request) error {
	var in control.Message
	if err := read(w, r, maxMessage, &in); err != nil {
		return err
	}
	u := in.Unasked
	u.ID, u.User, u.Trust, u.Files = bots.NewSendID(core.Operator, "cli", u.ID), nil, core.Vault, nil
	var err error
	if u.Bot, err = s.Bots.Named(u.Bot); err != nil {
		return err
	}
	if u.Files, err = s.keep(r.Context(), in.Attached); err != nil {
		return err
	}
	posted, err := s.Mail.Send(r.Context(), u, control.By)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusAccepted, posted)
}

// keep stores the files, or none of them.
func (s *server) keep(ctx context.Context, files []control.File) (kept []core.File, err error) {
	for _, f := range files {
		one, err := s.Files.Save(ctx, core.Operator, f.Name, "", 0, bytes.NewReader(f.Data))
		if err != nil {
			s.Files.Remove(kept)
			return nil, err
		}
		kept = append(kept, one)
	}
	return kept, nil
}

func (s *server) sent(w http.ResponseWriter, r *http.Request) error {
	posted, err := s.Mail.Sent(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, posted)
}
