package former_test

import (
	"reflect"
	"strings"
	"testing"

	"gatehouse/configs/former"
)

var platforms = []string{"telegram", "discord"}

func all(former.Bot) bool { return true }

// As the original system's program writes it, and as people write it by hand.
const written = `discord:
  ack_emoji: "👀"
  allowed_guilds: ['77']
  allowed_users: ['2002', '2003']
  bot_token: discord-token
  default_trust_level: vault
  dm_trust_level: full
  enabled: false
  group_mention_mode: mention_only
  group_trust_level: vault
matrix:
  enabled: false
telegram:
  enabled: true
  bot_token: "telegram-token"
  allowed_users: [1001, 1002]
  dm_trust_level: sandboxed
`

func TestReadReturnsBotsUsersAndPoliciesOfTheOriginalsFile(t *testing.T) {
	f := former.Read("x", []byte(written), platforms, func(b former.Bot) bool { return b.Enabled })
	if f == nil || len(f.Bots) != 2 {
		t.Fatalf("%+v", f)
	}
	if u := f.Usable(); len(u) != 1 || u[0].Platform != "telegram" {
		t.Errorf("usable: %+v", u)
	}
	dc, tg := f.Bots[0], f.Bots[1]
	if dc.Platform != "discord" || dc.Enabled || dc.Token.Reveal() != "discord-token" || !reflect.DeepEqual(dc.Allowed, []string{"2002", "2003"}) || dc.DMTrust != "vault" || dc.GroupTrust != "vault" {
		t.Errorf("discord: %+v", dc)
	}
	if tg.Platform != "telegram" || !tg.Enabled || tg.Token.Reveal() != "telegram-token" || !reflect.DeepEqual(tg.Allowed, []string{"1001", "1002"}) || tg.DMTrust != "sandboxed" || tg.GroupTrust != "sandboxed" {
		t.Errorf("telegram: %+v", tg)
	}
	if want := []string{"discord.ack_emoji", "discord.allowed_guilds", "discord.group_mention_mode", "matrix"}; !reflect.DeepEqual(f.Left, want) {
		t.Errorf("left: %v, want %v", f.Left, want)
	}
}

func TestReadLeavesOtherFilesAlone(t *testing.T) {
	for name, text := range map[string]string{
		"ours":              "bots: [{name: a, platform: telegram}]",
		"ours and more":     "bots: []\ntelegram: {enabled: true}",
		"empty":             "",
		"a list":            "- telegram",
		"not YAML":          "telegram: {",
		"another program's": "mail: {enabled: true}",
		"no fields":         "telegram: yes",
	} {
		if f := former.Read("x", []byte(text), platforms, all); f != nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(written)
	f.Add("telegram: {bot_token: [SECRET], SECRET: 1, allowed_users: {a: 1}}")
	f.Add("telegram: {enabled: [], dm_trust_level: {}, allowed_users: [[], {}, null, 1.5]}\nSECRET: 2")
	f.Fuzz(func(t *testing.T, text string) {
		file := former.Read("x", []byte(text), platforms, all)
		if file == nil {
			return
		}
		for _, b := range file.Bots {
			if b.DMTrust != "sandboxed" && b.DMTrust != "vault" || b.GroupTrust != "sandboxed" && b.GroupTrust != "vault" {
				t.Errorf("levels %q, %q", b.DMTrust, b.GroupTrust)
			}
		}
		if strings.Contains(strings.Join(file.Left, " "), "SECRET") {
			t.Errorf("a value is named: %v", file.Left)
		}
	})
}
