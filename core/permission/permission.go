// Package permission is the policy of tool calls: what a sender may read, which
// tools a turn is offered, and which calls run, are refused, or need an approval.
// It has no database and asks no one; package guard below it does.
package permission

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/vault"
)

// A Verdict is what becomes of a call.
type Verdict uint8

// Verdicts. The zero value is no.
const (
	Deny Verdict = iota
	MustAsk
	Allow
)

var verdicts = [...]string{"deny", "ask", "allow"}

func (v Verdict) String() string {
	if int(v) < len(verdicts) {
		return verdicts[v]
	}
	return verdicts[Deny]
}

// A Decision is what becomes of one tool call, and why.
type Decision struct {
	Verdict   Verdict
	Rule      string                // which rule decided: one of the constants Rule…
	Text      string                // for the model and for users: why; "" where it goes on by a rule
	Suggested []core.SuggestedGrant // of an ask: what may be granted beyond this once; empty: only this once
	Commands  []string              // of a shell: the simple commands that it runs
	Shown     string                // of an approved call: the state of the file that the approval is for
}

// A GrantRow is one tool grant that is.
type GrantRow struct {
	ID      string     `json:"id" db:"id"`
	Session string     `json:"session_id" db:"session_id"`
	User    int64      `json:"user_id" db:"user_id"`
	Trust   core.Trust `json:"trust_level" db:"trust"`
	Kind    string     `json:"kind" db:"kind"` // read, write, bash
	Pattern string     `json:"pattern" db:"pattern"`
	By      string     `json:"by" db:"granted_by"`
	Created string     `json:"-" db:"created_at"`
	At      time.Time  `json:"at" db:"-"`
}

// A Call is a tool call with what a decision about it depends on.
type Call struct {
	Profile   Profile
	Tool      tool.Tool
	Input     json.RawMessage
	Access    tool.Access
	Grants    []GrantRow   // of this session, user and trust
	Vault     *vault.Vault // nil: none
	Isolation bool         // there is a sandbox for what needs one
	Own       []string     // paths of the gateway's own files
}

// Decide returns what becomes of the call. It changes nothing: the same call
// with the same grants and files is decided the same way. The error is
// Profile.Named's.
func (c Call) Decide(ctx context.Context) (Decision, error) {
	q := question{p: c.Profile, t: c.Tool, input: c.Input, a: c.Access, grants: c.Grants, ignore: IgnoreLines(c.Vault), isolation: c.Isolation}
	q.vault, q.resolve = place(c.Vault)
	q.where = newWhere(c.Vault, c.Access.Dir, c.Own)
	if fetches(c.Profile, c.Tool, c.Access) {
		var err error
		if q.known, err = namedAddress(ctx, c.Profile, c.Access); err != nil {
			return Decision{}, err
		}
	}
	return q.decide(), nil
}

// Request returns what is shown of a call that has to be approved.
func Request(t tool.Tool, a tool.Access, d Decision) core.PermissionRequest {
	r := core.PermissionRequest{ToolName: t.Name, SuggestedGrants: d.Suggested}
	if r.SuggestedGrants == nil {
		r.SuggestedGrants = []core.SuggestedGrant{}
	}
	switch {
	case t.Kind == tool.Shell:
		r.Kind, r.Command = kindBash, a.Command
	case t.Kind == tool.Network:
		r.Kind, r.URL = kindWeb, a.URL
	case len(a.Write) > 0:
		r.Kind, r.Path = kindWrite, strings.Join(a.Write, ", ")
	default:
		r.Kind, r.Path = kindRead, strings.Join(a.Read, ", ")
	}
	return r
}

// place returns where a vault is and how names in it are resolved.
func place(v *vault.Vault) (path string, resolve func(string) (string, bool)) {
	if v == nil {
		return "", nil
	}
	return v.Path(), func(name string) (string, bool) {
		if !filepath.IsAbs(name) {
			name = v.Path() + "/" + name // not cleaned: ".." behind a link is not textual
		}
		if at, base := filepath.Split(name); base != ".." {
			if real, err := filepath.EvalSymlinks(at); err == nil {
				name = filepath.Join(real, base)
			}
		}
		d, err := v.Resolve(v.Path(), name)
		if err != nil {
			return "", false
		}
		_, err = os.Lstat(d.Path)
		if d.Inside {
			return d.Rel, err == nil
		}
		return d.Path, err == nil
	}
}

// IgnoreFile names, in the vault, what no one may read, by lines as of .gitignore.
const IgnoreFile = ".parachuteignore"

const maxIgnored = 64 << 10 // bytes of it that count

// IgnoreLines returns the lines of v's .parachuteignore; none without the file. A
// file that cannot be read closes everything.
func IgnoreLines(v *vault.Vault) []string {
	if v == nil {
		return nil
	}
	f, err := v.Root().Open(IgnoreFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return []string{"**"}
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxIgnored))
	lines.Buffer(nil, maxIgnored+1)
	var out []string
	for lines.Scan() {
		out = append(out, lines.Text())
	}
	if lines.Err() != nil {
		return []string{"**"}
	}
	return out
}
