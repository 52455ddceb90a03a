// Package bots has what is configured about bots: their names and platforms,
// how each treats users without access, and the trust that it gives by default.
package bots

import (
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/texts"
)

// Every is the name that represents all bots of a platform, in a block.
const Every = "*"

// Policies: what becomes of a direct message of a sender without access. People
// with access keep it under every policy. "" is Pairing; an unknown word is
// Disabled.
const (
	Pairing   = "pairing"   // a request, a code, a decision
	Allowlist = "allowlist" // the listed ids run at Policy.DMTrust; an empty list admits no one
	Open      = "open"      // everyone runs at sandboxed
	Disabled  = "disabled"  // no answer
)

// A Policy is how one bot treats users without access.
type Policy struct {
	Platform   string     // of the ids in Allowed; Revoke looks users up there
	DM         string     // one of the policies above
	Allowed    []string   // platform ids, for Allowlist
	DMTrust    core.Trust // preset when approving, and the level of Allowlist; Stranger = sandboxed
	GroupTrust core.Trust // preset level of an enabled group; Stranger = sandboxed
}

// Admits returns the trust at which a sender without access is answered, by their platform id;
// Stranger if they are not. The Open policy decides about no one, so it gives the least.
func (p Policy) Admits(id string) core.Trust {
	switch {
	case p.DM == Open:
		return core.Sandboxed
	case p.DM == Allowlist && slices.Contains(p.Allowed, id):
		return Preset(p.DMTrust)
	}
	return core.Stranger
}

// A Bot is a configured bot.
type Bot struct{ Name, Platform string }

// Bots reads what is configured at the time of each call, so a change of the
// settings is effective at once. The zero value has no bots, and Pairing for each.
type Bots struct {
	list   func() []Bot
	policy func(bot string) Policy
}

// New returns Bots that read list and policy; either may be nil. Both are
// called inside transactions, so they must be quick.
func New(list func() []Bot, policy func(bot string) Policy) Bots {
	return Bots{list: list, policy: policy}
}

// List returns the configured bots.
func (b Bots) List() []Bot {
	if b.list == nil {
		return nil
	}
	return b.list()
}

// Policy returns the policy of a bot.
func (b Bots) Policy(bot string) Policy {
	if b.policy == nil {
		return Policy{}
	}
	return b.policy(bot)
}

// Resolve returns the name of a configured bot: name itself, or the only bot of
// the platform that name names. Any other name is returned unchanged. It is
// core.Invalid to name a platform that has several bots.
func (b Bots) Resolve(name string) (string, error) {
	var of []string
	for _, x := range b.List() {
		if x.Name == name {
			return name, nil
		}
		if x.Platform == name {
			of = append(of, x.Name)
		}
	}
	switch len(of) {
	case 0:
		return name, nil
	case 1:
		return of[0], nil
	}
	slices.Sort(of)
	return "", core.Errorf(core.Invalid, "there are several bots on %s; name one of them: %s", name, strings.Join(of, ", "))
}

// Configured reports whether there is a bot of this name.
func (b Bots) Configured(bot string) bool {
	return slices.ContainsFunc(b.List(), func(x Bot) bool { return x.Name == bot })
}

// Platform returns the platform of a bot, or the bot's own name where none is known.
func (b Bots) Platform(bot string) string {
	if p := b.Policy(bot).Platform; p != "" {
		return p
	}
	for _, x := range b.List() {
		if x.Name == bot {
			return x.Platform
		}
	}
	return bot
}

// Of returns bot alone, or for Every the names of all bots on the platform.
func (b Bots) Of(bot, platform string) []string {
	if bot != Every {
		return []string{bot}
	}
	var out []string // bounded by the configured bots
	for _, x := range b.List() {
		if x.Platform == platform {
			out = append(out, x.Name)
		}
	}
	return out
}

// Preset returns t, or sandboxed where t is not set; never more than vault,
// because full is not given in chat.
func Preset(t core.Trust) core.Trust { return core.Least(core.Vault, max(core.Sandboxed, t)) }

// Grantable returns the level to give: asked, or the preset of fallback when
// none is asked for. It is core.Invalid to ask for more than vault.
func Grantable(asked, fallback core.Trust) (core.Trust, error) {
	switch {
	case asked == core.Stranger:
		return Preset(fallback), nil
	case asked > core.Vault:
		return core.Stranger, texts.Error(core.Invalid, "no_full")
	}
	return asked, nil
}

// Within returns the level to give, as Grantable does; core.Denied where it, or the preset that is
// given without one, is above most. Stranger is no bound.
func Within(asked, fallback, most core.Trust) (core.Trust, error) {
	given, err := Grantable(asked, fallback)
	if err == nil && most != core.Stranger && given > most {
		return core.Stranger, core.Errorf(core.Denied, "the trust level %s is above your own, which is %s: name a lower one", given, most)
	}
	return given, err
}
