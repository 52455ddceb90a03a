package configs

import (
	"slices"

	"gatehouse/configs/former"
	"gatehouse/configs/values"
)

// OriginalBots returns the bots file if it is the original system's, else nil. A
// file that cannot be read is ReadBots' to report.
func (c *Config) OriginalBots() *former.File {
	path, _ := c.BotsPath()
	if path == "" {
		return nil
	}
	text, _, err := values.ReadBounded(path, maxBotsFile)
	if err != nil {
		return nil
	}
	return former.Read(path, text, platformNames(), func(b former.Bot) bool {
		p, ok := platformNamed(b.Platform)
		return ok && p.token(b.Token.Reveal()) == nil && !c.hasSetting(b.Platform)
	})
}

// hasSetting reports whether a setting configures the platform's bot.
func (c *Config) hasSetting(platform string) bool {
	return slices.ContainsFunc(c.settingBots(), func(b Bot) bool { return b.Platform == platform })
}

// originalBots returns the usable bots of the original system's file.
func (c *Config) originalBots(o *former.File) (list []Bot) {
	for _, b := range o.Usable() {
		p, _ := platformNamed(b.Platform)
		list = append(list, Bot{Name: b.Platform, Platform: b.Platform, Token: b.Token, APIURL: p.bot(c).APIURL, DMPolicy: "pairing",
			DMTrust: b.DMTrust, GroupTrust: b.GroupTrust, Where: o.Path, InFile: true, Off: !b.Enabled})
	}
	return list
}
