package telegramtest

import (
	"bytes"
	"encoding/json"
	"net/http"

	"gatehouse/connectors/simulator"
)

// A sending is one message to send over the control interface.
type sending struct {
	target
	Outgoing
}

// ctlSend takes one message or an array of them; an array stops at its first
// error.
func (s *Server) ctlSend(w http.ResponseWriter, r *http.Request) (any, error) {
	var raw json.RawMessage
	if err := decode(w, r, &raw); err != nil {
		return nil, err
	}
	one := !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("["))
	var list []sending
	if one {
		raw = append(append([]byte("["), raw...), ']')
	}
	if err := simulator.DecodeControl(raw, &list); err != nil {
		return nil, err
	}
	out := make([]Message, 0, len(list))
	for _, v := range list {
		u, to, err := s.resolve(v.target)
		if err != nil {
			return nil, err
		}
		m, err := u.Post(to, v.Outgoing)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	if one {
		return out[0], nil
	}
	return out, nil
}

func (s *Server) ctlEdit(w http.ResponseWriter, r *http.Request) (any, error) {
	var v struct {
		target
		Text string `json:"text"`
	}
	if err := decode(w, r, &v); err != nil {
		return nil, err
	}
	u, in, err := s.resolve(v.target)
	if err != nil {
		return nil, err
	}
	return u.Edit(in, v.Message, v.Text)
}

func (s *Server) ctlPress(w http.ResponseWriter, r *http.Request) (any, error) {
	var v struct {
		target
		Data string `json:"data"`
	}
	if err := decode(w, r, &v); err != nil {
		return nil, err
	}
	u, in, err := s.resolve(v.target)
	if err != nil {
		return nil, err
	}
	id, err := u.Press(in, v.Message, v.Data)
	return map[string]string{"query": id}, err
}

func (s *Server) ctlReact(w http.ResponseWriter, r *http.Request) (any, error) {
	var v struct {
		target
		Emoji []string `json:"emoji"`
	}
	if err := decode(w, r, &v); err != nil {
		return nil, err
	}
	u, in, err := s.resolve(v.target)
	if err != nil {
		return nil, err
	}
	return nil, u.React(in, v.Message, v.Emoji...)
}

func (s *Server) ctlBlock(w http.ResponseWriter, r *http.Request) (any, error) {
	return s.setBlock(w, r, true)
}

func (s *Server) ctlUnblock(w http.ResponseWriter, r *http.Request) (any, error) {
	return s.setBlock(w, r, false)
}

func (s *Server) setBlock(w http.ResponseWriter, r *http.Request, blocked bool) (any, error) {
	var v target
	if err := decode(w, r, &v); err != nil {
		return nil, err
	}
	u, _, err := s.resolve(v)
	if err != nil {
		return nil, err
	}
	u.setBlocked(blocked)
	return nil, nil
}

func (s *Server) ctlFault(w http.ResponseWriter, r *http.Request) (any, error) {
	var f Fault
	if err := decode(w, r, &f); err != nil {
		return nil, err
	}
	_, err := s.Inject(f)
	return nil, err
}

func (s *Server) ctlNoFaults(http.ResponseWriter, *http.Request) (any, error) {
	s.ClearFaults()
	return nil, nil
}

type botCall struct {
	Bot int64  `json:"bot"`
	Raw string `json:"raw"`
	On  bool   `json:"on"`
}

func (s *Server) ctlInject(w http.ResponseWriter, r *http.Request) (any, error) {
	v, b, err := s.botCall(w, r)
	if err != nil {
		return nil, err
	}
	return map[string]int64{"update_id": b.InjectRaw(v.Raw)}, nil
}

func (s *Server) ctlIdle(w http.ResponseWriter, r *http.Request) (any, error) {
	_, b, err := s.botCall(w, r)
	if err == nil {
		b.IdleWeek()
	}
	return nil, err
}

func (s *Server) ctlRevoke(w http.ResponseWriter, r *http.Request) (any, error) {
	_, b, err := s.botCall(w, r)
	if err != nil {
		return nil, err
	}
	return map[string]string{"token": b.Revoke()}, nil
}

func (s *Server) ctlFlood(w http.ResponseWriter, r *http.Request) (any, error) {
	v, _, err := s.botCall(w, r)
	if err == nil {
		s.SetFlood(v.On)
	}
	return nil, err
}

func (s *Server) botCall(w http.ResponseWriter, r *http.Request) (botCall, Bot, error) {
	var v botCall
	if err := decode(w, r, &v); err != nil {
		return v, Bot{}, err
	}
	b, err := s.findBot(v.Bot)
	return v, b, err
}

func (s *Server) ctlEvents(http.ResponseWriter, *http.Request) (any, error) {
	return http.HandlerFunc(s.ServeEvents), nil
}
