package chat

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"gatehouse/connectors/chat/arguments"
	"gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/bus"
	"gatehouse/core/command"
	"gatehouse/core/orchestrator"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing/places"
)

// chosenModel is the model that was chosen for a chat, or for a whole group.
type chosenModel struct {
	db     *store.DB
	bound  *bound
	chats  *session.Store
	groups *places.Store
}

// get returns the chosen model, or "": that of the conversation, else the chat's.
func (m *chosenModel) get(ctx context.Context, r command.Request) (string, error) {
	sess, model, err := m.next(ctx, r)
	return cmp.Or(sess.ChosenModel, model), err
}

// next returns the conversation of the sender's next message, and the model that was chosen
// for its chat. One that is yet to begin has no id.
func (m *chosenModel) next(ctx context.Context, r command.Request) (sess session.Session, model string, err error) {
	sess, _, err = m.bound.sessions.Current(ctx, m.db, r.In.Address)
	if err != nil {
		return sess, "", err
	}
	if sess.ID == "" || !r.In.Group() && sess.User != r.User {
		sess = session.Session{TrustLevel: r.Trust}
	}
	if r.In.Group() {
		s, err := m.groups.Place(ctx, m.db, r.In.Bot, r.In.Place)
		if sess.ID == "" {
			sess.AgentType = s.Agent
		}
		return sess, s.Model, err
	}
	set, err := m.chats.Settings(ctx, m.db, r.In.Address)
	return sess, set.Model, err
}

// set stores the chosen model: for a group at once, for a direct chat with the
// returned write. The write also drops what was chosen before for the conversation
// alone, so that the newest choice applies.
func (m *chosenModel) set(ctx context.Context, r command.Request, model string) (write func(context.Context, *store.Tx) error, err error) {
	unchoose := func(ctx context.Context, tx *store.Tx) error { return m.chats.Unchoose(ctx, tx, m.bound.ref(r)) }
	if !r.In.Group() {
		set, err := m.chats.Settings(ctx, m.db, r.In.Address)
		set.Model = model
		return func(ctx context.Context, tx *store.Tx) error {
			if err := unchoose(ctx, tx); err != nil {
				return err
			}
			return m.chats.SetSettings(ctx, tx, m.bound.ref(r), set)
		}, err
	}
	s, err := m.groups.Place(ctx, m.db, r.In.Bot, r.In.Place)
	if err != nil {
		return nil, err
	}
	s.Model = model
	return unchoose, m.groups.SetPlace(ctx, r.In.Bot, r.In.Place, s, r.By())
}

// models handles /model.
type models struct {
	chosen *chosenModel
	models Models
	asks   *ask.Buttons
}

// run lists the models that may answer the sender, or chooses one for the chat.
func (m *models) run(ctx context.Context, r command.Request) (command.Outcome, error) {
	names := m.models.Names(r.Guest())
	if r.Args() == "" {
		return m.list(ctx, r, names)
	}
	model, done := "", texts.Text("model_default")
	switch found := matching(names, r.Args()); {
	case strings.EqualFold(r.Args(), "default"):
	case len(found) != 1:
		return command.Respond("model_unknown", texts.With{"Model": texts.Plain(core.CutRunes(r.Args(), 80)), "Several": plainNames(found), "Example": example(names)})
	default:
		model = found[0]
		done = texts.Text("model_chosen", texts.With{"Model": model})
	}
	write, err := m.chosen.set(ctx, r, model)
	if err != nil {
		return command.Outcome{}, err
	}
	return command.Outcome{Text: done, Write: write}, nil
}

// matching returns the name that equals word, or else all names that contain it.
func matching(names []string, word string) (found []string) {
	for _, name := range names {
		if strings.EqualFold(name, word) {
			return []string{name}
		}
		if strings.Contains(strings.ToLower(name), strings.ToLower(word)) {
			found = append(found, name)
		}
	}
	return found
}

// plainNames returns the first names of a list, for Markdown; "" of none.
func plainNames(names []string) string {
	const most = 5
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "…")
	}
	return texts.Escape(strings.Join(names, ", "))
}

// example returns the name that examples have: the first.
func example(names []string) string {
	if len(names) == 0 {
		return "default"
	}
	return names[0]
}

func (m *models) list(ctx context.Context, r command.Request, names []string) (command.Outcome, error) {
	chosen, err := m.chosen.get(ctx, r)
	if err != nil {
		return command.Outcome{}, err
	}
	var b strings.Builder
	b.WriteString(texts.Text("models") + "\n\n")
	o := ask.Offer{Command: "model"}
	for _, name := range names {
		if name != chosen {
			o.Add(name, name)
		}
		b.WriteString(texts.Text("models_line", texts.With{"Model": name, "Chosen": name == chosen}) + "\n")
	}
	if chosen != "" {
		o.Add(texts.Text("model_configured"), "default")
	}
	b.WriteString("\n" + texts.Text("models_end"))
	if managesChat(r) != nil || len(names) < 2 && chosen == "" {
		return command.Outcome{Text: b.String()}, nil
	}
	return m.asks.Offer(r, b.String(), o)
}

// busy handles /busy: what happens to messages that arrive during an answer.
type busy struct {
	db        *store.DB
	bound     *bound
	chats     *session.Store
	byDefault func() string
	asks      *ask.Buttons
}

type busyMode struct{ name, about string }

// modes returns the modes with their descriptions.
func (*busy) modes() []busyMode {
	return []busyMode{
		{"collect", texts.Text("busy_collect")},
		{"queue", texts.Text("busy_queue")},
		{"interrupt", texts.Text("busy_interrupt")},
	}
}

// mode returns the mode of the chat.
func (m *busy) mode(s session.ChatSettings) string { return cmp.Or(s.BusyMode, m.byDefault()) }

// run chooses a mode for the chat, or lists the modes.
func (m *busy) run(ctx context.Context, r command.Request) (command.Outcome, error) {
	set, err := m.chats.Settings(ctx, m.db, r.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	for _, mode := range m.modes() {
		if mode.name == strings.ToLower(r.Args()) {
			set.BusyMode = mode.name
			return command.Outcome{Text: texts.Text("busy_chosen", texts.With{"About": mode.about}), Write: func(ctx context.Context, tx *store.Tx) error {
				return m.chats.SetSettings(ctx, tx, m.bound.ref(r), set)
			}}, nil
		}
	}
	if r.Args() != "" {
		return arguments.Wrong(r.Args(), texts.Text("busy_how"))
	}
	var b strings.Builder
	b.WriteString(texts.Text("busy") + "\n\n")
	o := ask.Offer{Command: "busy"}
	for _, mode := range m.modes() {
		now := mode.name == m.mode(set)
		if !now {
			o.Add(mode.name, mode.name)
		}
		b.WriteString(texts.Text("busy_line", texts.With{"Name": mode.name, "About": mode.about, "Now": now}) + "\n")
	}
	b.WriteString("\n" + texts.Text("busy_end"))
	if managesChat(r) != nil {
		return command.Outcome{Text: b.String()}, nil
	}
	return m.asks.Offer(r, b.String(), o)
}

// A Chooser decides which model answers (orchestrator.Next).
type Chooser interface {
	Next(s session.Session, chat string, role agent.Role, guest bool) (orchestrator.Choice, error)
}

// status handles /status.
type status struct {
	db      *store.DB
	updates Updates
	running *bus.Bus
	chats   *session.Store
	chosen  *chosenModel
	agents  *agent.Agents
	models  Chooser
	busy    *busy
	trust   *trust
	council func(ctx context.Context, r command.Request) string
}

// show returns what is running in the chat, and its settings.
func (s *status) show(ctx context.Context, r command.Request) (command.Outcome, error) {
	run, seconds := "", 0
	for _, i := range s.running.Active() {
		if i.Bot == r.In.Bot && i.Lane == r.Lane {
			run, seconds = i.Run, int(r.In.At.Sub(i.Started).Abs().Seconds())
		}
	}
	waiting, err := s.updates.Backlog(ctx, r.Lane, run)
	if err != nil {
		return command.Outcome{}, err
	}
	set, err := s.chats.Settings(ctx, s.db, r.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	sess, chosen, err := s.chosen.next(ctx, r)
	if err != nil {
		return command.Outcome{}, err
	}
	role := s.agents.Role(sess.AgentType, sess.Workspace)
	guest := !r.Manages() && core.Least(r.Trust, sess.TrustLevel, role.Trust) <= core.Sandboxed
	model, err := s.models.Next(sess, chosen, role, guest)
	if err != nil {
		return command.Outcome{}, err
	}
	trust, _, err := s.trust.level(ctx, r)
	if err != nil {
		return command.Outcome{}, err
	}
	return command.Respond("status", texts.With{"Running": run != "", "Seconds": seconds, "Waiting": waiting,
		"Model": model.Model, "Busy": s.busy.mode(set), "Trust": trust, "Council": s.council(ctx, r)})
}
