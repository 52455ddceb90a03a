package access

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/core"
)

// A Keys lists, creates, rotates and revokes API keys.
type Keys struct {
	List   keysListCmd   `cmd:"" help:"List the API keys, without their secrets."`
	Create keysCreateCmd `cmd:"" help:"Make an API key; it is shown once."`
	Rotate keysRotateCmd `cmd:"" help:"Give an API key a new secret; it is shown once."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke an API key: its requests are refused, its runs and streams end."`

	Content Content `cmd:"" help:"The key of encrypted columns of the database."`
}

type keysListCmd struct {
	JSON bool `help:"As JSON."`
}

func (c *keysListCmd) Run(p *console.Process) error {
	var res control.Keys
	if err := p.Get("/api/keys", &res); err != nil {
		return err
	}
	return console.PrintList(p.Stdout, c.JSON, res.Keys, "No keys.", "ID\tLABEL\tUSER\tTRUST\tSCOPES\tLAST USED\tENDS", keyRow)
}

func keyRow(k control.Key) string {
	used, ends := "never", "never"
	if !k.LastUsedAt.IsZero() {
		used = k.LastUsedAt.Local().Format(console.Minute)
	}
	if !k.ExpiresAt.IsZero() {
		if ends = k.ExpiresAt.Local().Format(console.Minute); !time.Now().Before(k.ExpiresAt) {
			ends += " (over)"
		}
	}
	return console.Cells(k.ID, core.CleanName(k.Label), k.User, k.Trust, cmp.Or(strings.Join(k.Scopes, ","), "none"), used, ends)
}

type keysCreateCmd struct {
	Label  string        `arg:"" help:"What the key is for, such as \"alerts of db1\"."`
	Scopes []string      `required:"" name:"scope" placeholder:"SCOPE" help:"What it opens: chat, read, send, sync, metrics, admin."`
	Trust  string        `default:"sandboxed" enum:"sandboxed,vault,full" help:"The most that its turns may do: sandboxed, vault or full; not more than its user may."`
	User   string        `default:"1" placeholder:"PERSON" help:"Its user: a number or name of 'gatehouse people list', or platform and id, such as telegram:12345678; 1 is the owner."`
	For    time.Duration `default:"2160h" help:"How long it works, such as 30d; 0 is without end. The default is 90 days."`
	JSON   bool          `help:"As JSON."`
}

func (c *keysCreateCmd) Run(p *console.Process) error {
	q, err := p.Connect()
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	who, err := q.User(c.User)
	if err != nil {
		return err
	}
	key := map[string]any{"label": c.Label, "user_id": who.User, "trust_level": c.Trust, "scopes": c.Scopes}
	if c.For != 0 {
		key["expires_at"] = time.Now().Add(c.For).UTC()
	}
	var res control.NewKey
	if err := q.Do(http.MethodPost, "/api/keys", key, &res); err != nil {
		return err
	}
	if !c.JSON {
		fmt.Fprintln(p.Stderr, keyText(res.Record, who))
	}
	return printSecret(p, res, c.JSON)
}

// keyText returns what a new key can do.
func keyText(k control.Key, who control.Reference) string {
	until := "without end"
	if !k.ExpiresAt.IsZero() {
		until = "until " + k.ExpiresAt.Local().Format(console.Minute)
	}
	return fmt.Sprintf("The key acts for %s with the scopes %s, at trust %s at most, %s.", called(who), strings.Join(k.Scopes, ", "), k.Trust, until)
}

// printSecret prints the secret alone on standard output, so that a script can keep it.
func printSecret(p *console.Process, res control.NewKey, asJSON bool) error {
	if asJSON {
		return console.PrintJSON(p.Stdout, res)
	}
	fmt.Fprintf(p.Stderr, "This is the only time that the key %s is shown:\n", res.Record.ID)
	_, err := fmt.Fprintln(p.Stdout, res.Secret)
	return err
}

type keysRotateCmd struct {
	ID    string        `arg:"" help:"The key's id ('gatehouse keys list' shows it)."`
	Grace time.Duration `help:"How long the old secret is valid, too, such as 24h; at most 30d. Without it, the old secret ends at once, and what the key has running is stopped."`
	JSON  bool          `help:"As JSON."`
}

func (c *keysRotateCmd) Run(p *console.Process) error {
	body := map[string]any{}
	if c.Grace != 0 {
		body["old_expires_at"] = time.Now().Add(c.Grace).UTC()
	}
	var res control.NewKey
	if err := p.Request(http.MethodPost, control.Path("api", "keys", c.ID, "rotate"), body, &res); err != nil {
		return err
	}
	if until := res.Record.OldExpiresAt; !until.IsZero() && !c.JSON {
		fmt.Fprintf(p.Stderr, "The old secret is valid until %s.\n", until.Local().Format(console.Minute))
	}
	return printSecret(p, res, c.JSON)
}

type keysRevokeCmd struct {
	ID   string `arg:"" help:"The key's id ('gatehouse keys list' shows it)."`
	JSON bool   `help:"As JSON."`
}

func (c *keysRevokeCmd) Run(p *console.Process) error {
	if err := p.Request(http.MethodDelete, control.Path("api", "keys", c.ID), nil, nil); err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(p.Stdout, map[string]string{"revoked": c.ID})
	}
	_, err := fmt.Fprintf(p.Stdout, "Revoked %s.\n", c.ID)
	return err
}
