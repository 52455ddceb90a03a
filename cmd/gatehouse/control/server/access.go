package server

import (
	"encoding/json"
	"net/http"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/pairing/codes"
	"gatehouse/web"
)

// read decodes the JSON body of r, at most limit bytes, into v.
func read(w http.ResponseWriter, r *http.Request, limit int64, v any) error {
	raw, err := web.ReadJSON(w, r, limit)
	if err == nil {
		if err = json.Unmarshal(raw, v); err != nil {
			err = web.BodyFault(err, "the request could not be read")
		}
	}
	return err
}

func (s *server) claim(w http.ResponseWriter, r *http.Request) error {
	var in control.ClaimRequest
	if err := read(w, r, web.MaxJSON, &in); err != nil {
		return err
	}
	code, expires, err := s.Codes.NewClaim(r.Context(), in.Replace)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusCreated, control.ClaimCode{Code: code, ExpiresAt: expires})
}

func (s *server) invite(w http.ResponseWriter, r *http.Request) error {
	var in codes.Invitation
	if err := read(w, r, web.MaxJSON, &in); err != nil {
		return err
	}
	code, made, err := s.Codes.Invite(r.Context(), in, control.By)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusCreated, control.NewInvitation{Code: code, Link: s.InviteLink(made.Bot, code), Invitation: made})
}

func (s *server) invitations(w http.ResponseWriter, r *http.Request) error {
	list, err := s.Codes.Invites(r.Context())
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, control.Invitations{Invitations: list})
}

func (s *server) revokeInvitation(w http.ResponseWriter, r *http.Request) error {
	if err := s.Codes.RevokeInvite(r.Context(), r.PathValue("id"), control.By); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
