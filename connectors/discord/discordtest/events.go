package discordtest

import (
	"encoding/json"

	"gatehouse/connectors/simulator"
	"gatehouse/core"
)

func (s *Server) ctlState(*order) (any, error) {
	out := struct {
		Bots     []Account   `json:"bots"`
		Online   []ID        `json:"online"`
		Users    []Account   `json:"users"`
		Guilds   []GuildView `json:"guilds"`
		Channels []Channel   `json:"channels"`
	}{Online: []ID{}, Users: []Account{}, Guilds: s.Guilds(), Channels: s.Channels()}
	for _, b := range s.Bots() {
		out.Bots = append(out.Bots, b.Account())
		if b.Online() {
			out.Online = append(out.Online, b.ID())
		}
	}
	for _, u := range s.Users() {
		out.Users = append(out.Users, u.Account())
	}
	return out, nil
}

func (s *Server) ctlUser(o *order) (any, error) {
	var a Account
	if err := simulator.DecodeControl(o.raw, &a); err != nil {
		return nil, err
	}
	u, err := s.AddUser(a)
	if err != nil {
		return nil, err
	}
	return u.Account(), nil
}

func (s *Server) ctlGuild(o *order) (any, error) {
	var members []*User
	for _, id := range o.Members {
		u := s.User(id)
		if u == nil {
			return nil, core.Errorf(core.NotFound, "no person has the id %s", id)
		}
		members = append(members, u)
	}
	g, err := s.AddGuild(o.Name, s.User(o.Owner), members...)
	if err != nil {
		return nil, err
	}
	return map[string]ID{"guild": g.ID()}, nil
}

func (s *Server) ctlChannel(o *order) (any, error) {
	g := s.Guild(o.Guild)
	if g == nil {
		return nil, core.Errorf(core.NotFound, "no guild has the id %s", o.Guild)
	}
	return named("channel")(g.AddChannel(o.Type, o.Name))
}

// ctlSend takes one message or an array of them; an array stops at its first
// error.
func (s *Server) ctlSend(o *order) (any, error) {
	list := []*order{o}
	one := len(o.raw) == 0 || o.raw[0] != '['
	if !one {
		list = nil
		if err := simulator.DecodeControl(o.raw, &list); err != nil {
			return nil, err
		}
	}
	out := make([]Message, 0, len(list))
	for _, v := range list {
		if v == nil {
			return nil, core.Errorf(core.Invalid, "a message is no null")
		}
		u, err := s.user(v)
		if err != nil {
			return nil, err
		}
		m, err := u.Post(v.Channel, v.Outgoing)
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

func (s *Server) ctlGateway(o *order) (any, error) {
	b, err := s.findBot(o.Bot)
	if err != nil {
		return nil, err
	}
	switch o.Do {
	case "drop":
		b.Drop()
	case "hangup":
		b.Hangup(o.Code, o.Text)
	case "reconnect":
		b.Reconnect()
	case "invalidate":
		b.Invalidate(o.On)
	case "ask":
		b.AskHeartbeat()
	case "deafen":
		b.Deafen(o.On)
	case "freeze":
		b.Freeze(o.On)
	case "slow":
		b.Slow(o.Delay)
	case "shuffle":
		b.Shuffle(o.N)
	case "raw":
		b.InjectRaw(o.Text)
	case "dispatch":
		return nil, b.Dispatch(o.Name, json.RawMessage(o.Data))
	case "end":
		b.EndSessions()
	default:
		return nil, core.Errorf(core.Invalid, "nothing is called %q", o.Do)
	}
	return nil, nil
}
