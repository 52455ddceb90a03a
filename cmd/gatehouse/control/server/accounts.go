package server

import (
	"net/http"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/core"
	"gatehouse/web"
)

func (s *server) accounts(w http.ResponseWriter, r *http.Request) error {
	list, err := s.Accounts.List(r.Context())
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, control.Accounts{Accounts: list})
}

func (s *server) addAccount(w http.ResponseWriter, r *http.Request) error {
	var in control.AccountTerms
	if err := read(w, r, web.MaxJSON, &in); err != nil {
		return err
	}
	a, password, err := s.Accounts.Create(r.Context(), in.Name, in.Role, control.By)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusCreated, control.NewPassword{Account: a, Password: password})
}

// changeAccount gives an account the name and the role that are in the body.
func (s *server) changeAccount(w http.ResponseWriter, r *http.Request) error {
	var in control.AccountTerms
	if err := read(w, r, web.MaxJSON, &in); err != nil {
		return err
	}
	a, err := s.Accounts.Named(r.Context(), r.PathValue("name"))
	if err == nil && in.Role != "" {
		err = s.Accounts.SetRole(r.Context(), a.User, in.Role, control.By)
	}
	if err == nil && in.Name != "" {
		err = s.Accounts.Rename(r.Context(), a.User, in.Name, control.By)
	}
	if err != nil {
		return err
	}
	if a, err = s.Accounts.Of(r.Context(), a.User); err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, a)
}

func (s *server) resetAccount(w http.ResponseWriter, r *http.Request) error {
	a, err := s.Accounts.Named(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	password, err := s.Accounts.Reset(r.Context(), a.User, control.By)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, control.NewPassword{Account: a, Password: password})
}

func (s *server) removeAccount(w http.ResponseWriter, r *http.Request) error {
	a, err := s.Accounts.Named(r.Context(), r.PathValue("name"))
	if err == nil {
		err = s.Accounts.Remove(r.Context(), a.User, control.By)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// names answers with the names of accounts, also of removed ones, by user.
func (s *server) names(w http.ResponseWriter, r *http.Request) error {
	names, err := s.Users.Unlisted(r.Context())
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, names)
}

func (s *server) endTwoStep(w http.ResponseWriter, r *http.Request) error {
	a, err := s.Accounts.Named(r.Context(), r.PathValue("name"))
	if err == nil && !a.TwoStep {
		err = core.Errorf(core.Conflict, "two-step sign-in of %s is off", a.Name)
	}
	if err == nil {
		err = s.Accounts.EndTwoStep(r.Context(), a.User, control.By)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

func (s *server) accountSessions(w http.ResponseWriter, r *http.Request) error {
	a, err := s.Accounts.Named(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	list, err := s.Admins.Sessions(r.Context(), a.User)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, control.Sessions{Sessions: list})
}

// endAccountSessions ends the session ?id= of an account; without an id all.
func (s *server) endAccountSessions(w http.ResponseWriter, r *http.Request) error {
	a, err := s.Accounts.Named(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	n, err := s.Accounts.EndSession(r.Context(), a.User, r.URL.Query().Get("id"), control.By)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, control.Ended{Ended: n})
}
