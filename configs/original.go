package configs

import (
	"slices"

	"gatehouse/configs/former"
	"gatehouse/configs/values"
)

// An Original is a bots file of the original system.
type Original struct {
	Path string
	Text []byte
	former.File
	Set []string // platforms whose bot a setting configures, so that the file's is not used
}

// OriginalBots returns the bots file if it is the original system's, else nil. A
// file that cannot be read is ReadBots' to report.
func (c *Config) OriginalBots() *Original {
	path, _ := c.BotsPath()
	if path == "" {
		return nil
	}
	text, _, err := values.ReadBounded(path, maxBotsFile)
	if err != nil {
		return nil
	}
	f, ok := former.Read(text, platformNames())
	if !ok {
		return nil
	}
	o := &Original{Path: path, Text: text, File: f}
	for _, p := range platformNames() {
		if c.hasSetting(p) {
			o.Set = append(o.Set, p)
		}
	}
	return o
}

// hasSetting reports whether a setting configures the platform's bot.
func (c *Config) hasSetting(platform string) bool {
	return slices.ContainsFunc(c.settingBots(), func(b Bot) bool { return b.Platform == platform })
}

// Usable returns the bots that can run: with a valid token, and not configured by a
// setting.
func (o *Original) Usable() (list []former.Bot) {
	for _, b := range o.Bots {
		p, ok := platformNamed(b.Platform)
		if ok && b.Token.IsSet() && p.token(b.Token.Reveal()) == nil && !slices.Contains(o.Set, b.Platform) {
			list = append(list, b)
		}
	}
	return list
}

// bots returns the usable bots as ReadBots does.
func (o *Original) bots(c *Config) (list []Bot) {
	for _, b := range o.Usable() {
		p, _ := platformNamed(b.Platform)
		list = append(list, Bot{Name: b.Platform, Platform: b.Platform, Token: b.Token, APIURL: p.bot(c).APIURL, DMPolicy: "pairing",
			DMTrust: b.DMTrust, GroupTrust: b.GroupTrust, Where: o.Path, InFile: true, Off: !b.Enabled})
	}
	return list
}
