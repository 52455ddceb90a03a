package orchestrator

import (
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/texts"
	"gatehouse/core/transcript"
)

// choose takes the model of the request, else that of the session, of the chat, of
// workspace or agent, as far as it is there for the sender, else the configured one.
// For a name of the command-line runtime it sets no model, and uses the runtime.
func (r *run) choose(asked string, warnings []core.Warning) ([]core.Warning, error) {
	if r.isRuntimeModel(asked) {
		return warnings, r.useRuntime(asked)
	}
	var err error
	for _, c := range []struct{ code, name string }{{"session_model", r.t.Session.ChosenModel}, {"chat_model", r.t.Model}} {
		if asked != "" || c.name == "" {
			continue
		}
		if r.model, err = r.o.Model(c.name, r.t.guest()); err == nil {
			return warnings, nil
		}
		if k := core.KindOf(err); k != core.Invalid && k != core.Denied {
			return warnings, err
		}
		warnings = append(warnings, core.Warning{Code: c.code, Message: core.TextOf(err)})
	}
	if own := r.t.Role.Model; asked == "" && own != "" {
		if r.isRuntimeModel(own) {
			if err = r.useRuntime(own); err == nil {
				return warnings, nil
			}
			return r.instead(core.TextOf(err), warnings)
		}
		r.model, err = r.o.Model(own, r.t.guest())
		switch core.KindOf(err) {
		case core.Invalid:
			warnings = append(warnings, core.Warning{Code: "agent_model", Message: core.TextOf(err)})
		case core.Denied: // guests have a model of their own
		default:
			return warnings, err
		}
	}
	r.model, err = r.o.Model(asked, r.t.guest())
	return warnings, err
}

// instead takes the configured model in place of the agent's, which the runtime
// refuses because of why. The user is notified: the warning is shown in chats too.
func (r *run) instead(why string, warnings []core.Warning) (_ []core.Warning, err error) {
	if r.model, err = r.o.Model("", r.t.guest()); err != nil {
		return warnings, err
	}
	text := texts.Text("other_model", texts.With{"Why": why, "Model": r.model.About().Name})
	return append(warnings, core.Warning{Code: "runtime_model", Message: text}), nil
}

// A Choice is a model and who chose it.
type Choice struct {
	Model string
	By    string // ByUser, ByChat, ByAgent or ByDefault
}

// Who chose a model.
const (
	ByUser    = "session" // someone for this conversation
	ByChat    = "chat"    // /model
	ByAgent   = "agent"   // the file of the agent or workspace
	ByDefault = "default" // the settings
)

// Next returns the model that choose will take for the session's next turn, which
// requests none. chat is the model that was chosen for its chat.
func (o *Orchestrator) Next(s transcript.Session, chat string, role agent.Role, guest bool) (Choice, error) {
	foreign := o.Runtime != nil && role.Model != "" && o.Runtime.Answers(role.Model)
	for _, c := range []Choice{{s.ChosenModel, ByUser}, {chat, ByChat}, {role.Model, ByAgent}} {
		if c.Model == "" {
			continue
		}
		if c.By == ByAgent && foreign {
			return c, nil
		}
		if m, err := o.Model(c.Model, guest); err == nil {
			return Choice{m.About().Name, c.By}, nil
		}
	}
	m, err := o.Model("", guest)
	if err != nil {
		return Choice{}, err
	}
	return Choice{m.About().Name, ByDefault}, nil
}
