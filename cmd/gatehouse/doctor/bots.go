package doctor

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gatehouse/configs"
	"gatehouse/core"
)

// bots returns the configured ones; LoadAll has found nothing wrong with them.
func (p Subject) bots() []configs.Bot {
	bots, _ := p.Config.ReadBots(nil)
	return bots
}

// A platform is what an operator has to know about a platform to fix a bot.
type platform struct{ name, setting, again string }

var platforms = map[string]platform{
	"telegram": {"Telegram", "GATEHOUSE_TELEGRAM_API_URL", "get a new one from @BotFather (/token)"},
	"discord":  {"Discord", "GATEHOUSE_DISCORD_API_URL", "reset it in the developer portal (Bot, Reset Token)"},
}

// checkBots asks each bot's platform who its token is, and warns of open doors.
func checkBots(ctx context.Context, p Subject) []Finding {
	bots := p.bots()
	if len(bots) == 0 || p.Test == nil {
		return []Finding{{"bots", Warn, "no bot is configured, so only the API and the panel are served",
			"gatehouse init asks for one; or get a token from @BotFather and set GATEHOUSE_TELEGRAM_TOKEN or GATEHOUSE_TELEGRAM_TOKEN_FILE"}}
	}
	var checks []Finding
	for _, b := range bots {
		checks = append(checks, checkBot(ctx, p, b))
		checks = append(checks, checkPolicy(b, p.Config.BotChanges()[b.Name].Policy != nil)...)
	}
	return checks
}

// tokenPlace returns where a bot's token is put.
func tokenPlace(b configs.Bot) string {
	if b.TokenFile != "" {
		return b.TokenFile
	}
	return b.Where
}

func checkBot(ctx context.Context, p Subject, b configs.Bot) Finding {
	c := Finding{Name: b.Name}
	about := platforms[b.Platform]
	name, err := "", error(nil)
	if b.Fault == "" {
		name, err = p.Test(ctx, b)
	}
	switch {
	case b.Fault != "":
		c.State, c.Text, c.Fix = Fail, b.Fault, "put a valid token into "+tokenPlace(b)
	case err == nil:
		c.State, c.Text = OK, "the token belongs to @"+strings.TrimPrefix(name, "@")
	case core.KindOf(err) == core.Denied:
		c.State, c.Text = Fail, about.name+" refuses the token: it was revoked or is mistyped"
		c.Fix = about.again + " and put it into " + tokenPlace(b)
	case core.KindOf(err) == core.Invalid:
		c.State, c.Text, c.Fix = Fail, core.TextOf(err), "put a valid token into "+tokenPlace(b)
	default:
		c.State, c.Text = Fail, b.APIURL+" did not answer as it should: "+Reason(err)
		c.Fix = "check this machine's network and " + about.setting
		if b.InFile {
			c.Fix = "check this machine's network, and api_url at " + b.Where
		}
	}
	return c
}

// checkPolicy warns of a bot that lets everyone or no one in, and of a token
// that others can listen to. panel: its policy was set there.
func checkPolicy(b configs.Bot, panel bool) (checks []Finding) {
	setting := func(short, field string) string {
		switch {
		case panel && short != "API_URL":
			return field + " on the panel's page Settings"
		case b.InFile:
			return field + " at " + b.Where
		}
		return configs.Prefix + "_" + strings.ToUpper(b.Platform) + "_" + short
	}
	warn := func(when bool, text, fix string) {
		if when {
			checks = append(checks, Finding{b.Name, Warn, text, fix})
		}
	}
	warn(b.Off, "the bot was stopped in the panel, and stays so", "start it on the panel's page Bots, if it is to answer")
	warn(b.DMPolicy == "open", "anyone who finds the bot may write to it, at trust sandboxed", "set "+setting("DM_POLICY", "dm_policy")+" to pairing")
	warn(b.DMPolicy == "allowlist" && len(b.AllowedUsers) == 0, "the allowlist is empty, so no one may write to the bot",
		"list user ids in "+setting("ALLOWED_USERS", "allowed_users")+", or set "+setting("DM_POLICY", "dm_policy")+" to pairing")
	warn(inTheClear(b.APIURL), "the bot's token goes over the network in the clear", "give "+setting("API_URL", "api_url")+" an https address")
	return checks
}

// checkFiles warns of files with tokens, and of the file of bots, that other
// users of the machine can read.
func checkFiles(_ context.Context, p Subject) (checks []Finding) {
	if o := p.Config.OriginalBots(); o != nil {
		checks = append(checks, Finding{"files", OK, o.Path + " is of the original system; the next start takes it over and keeps a copy", ""})
	}
	files := map[string]string{} // path → what it is
	for setting, path := range p.Config.SecretFiles() {
		files[path] = "the file of " + setting
	}
	for _, b := range p.bots() {
		if b.TokenFile != "" {
			files[b.TokenFile] = "the token's file of the bot " + b.Name
		}
	}
	if path, _ := p.Config.BotsPath(); path != "" {
		files[path] = "the file of bots"
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if mode, seen := exposed(path); seen {
			checks = append(checks, Finding{"files", Warn, files[path] + ", " + path + ", can be read by other users of this machine (mode " + mode + ")", "chmod 600 '" + path + "'"})
		}
	}
	return checks
}

// exposed reports whether users other than owner and group reach a file
// and may read or change it, or its group may change it.
func exposed(path string) (mode string, seen bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", false
	}
	info, err := os.Stat(real)
	if err != nil || info.Mode().Perm()&0o026 == 0 {
		return "", false
	}
	for dir := filepath.Dir(real); ; dir = filepath.Dir(dir) {
		if d, err := os.Stat(dir); err != nil || d.Mode().Perm()&0o011 == 0 {
			return "", false // no one else gets there
		}
		if dir == filepath.Dir(dir) {
			return fmt.Sprintf("%04o", info.Mode().Perm()), true
		}
	}
}
