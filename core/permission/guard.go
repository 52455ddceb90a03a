package permission

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"

	"gatehouse/core"
	"gatehouse/core/store"
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
	Text      string                // for the model and for people: why; "" where it goes on by a rule
	Suggested []core.SuggestedGrant // of an ask: what may be granted beyond this once; empty: only this once
	Commands  []string              // of a shell: the simple commands that it runs
}

// A Show shows asks to people in chat and replaces them by their outcome, both
// inside the transaction that opens or settles them. The buttons of a
// permission carry Ask.Data of OptionOnce, OptionGrant(i) and OptionDeny and
// are brought to Press. For a question (Ask.Kind) req is empty and the payload
// holds {"questions": …}.
type Show interface {
	Open(ctx context.Context, tx *store.Tx, a Ask, req core.PermissionRequest, p Profile) error
	Close(ctx context.Context, tx *store.Tx, a Ask, outcome string) error
}

// GuardOptions are what a Guard stands on; DB and Desk must be given.
type GuardOptions struct {
	DB        *store.DB
	Desk      *Desk
	Vault     *vault.Vault // its .parachuteignore counts, and links are resolved in it; nil: neither
	Isolation bool         // there is a sandbox for what needs one
	Clock     core.Clock   // nil: the system's
	Log       *slog.Logger // nil: none
	Metrics   *Metrics     // nil: counted nowhere
	Show      Show         // nil: only the panel and the API show asks
	// Own returns the absolute paths of the gateway's own files and folders that a
	// shell at full trust could read. A command that names one, or anything below
	// one, is asked each time. nil: there are none.
	Own func() []string
}

// A Guard decides what tool calls may do. It owns the table tool_grants and is
// safe for concurrent use.
type Guard struct{ o GuardOptions }

// NewGuard makes a Guard.
func NewGuard(o GuardOptions) *Guard {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Guard{o: o}
}

func (g *Guard) own() []string {
	if g.o.Own == nil {
		return nil
	}
	return g.o.Own()
}

// Bounds are p.Bounds with the lines of the vault's .parachuteignore as they
// are now, for tool.Turn.
func (g *Guard) Bounds(p Profile) (mayRead, mayWrite func(name string) bool) {
	return p.Bounds(IgnoreLines(g.o.Vault))
}

// Decide says what becomes of a call, asking nobody. It changes nothing: the
// same call with the same grants and files is decided the same way. q is the DB
// or a transaction.
func (g *Guard) Decide(ctx context.Context, q store.Queryer, p Profile, t tool.Tool, input json.RawMessage, a tool.Access) (Decision, error) {
	c := question{p: p, t: t, input: input, a: a, ignore: IgnoreLines(g.o.Vault), isolation: g.o.Isolation}
	c.vault, c.resolve = place(g.o.Vault)
	c.where = newWhere(g.o.Vault, a.Dir, g.own())
	if p.Session != "" && p.User > 0 {
		since := ""
		if !p.Since.IsZero() {
			since = core.Stamp(p.Since)
		}
		err := q.Select(ctx, &c.grants, `SELECT id, session_id, user_id, trust, kind, pattern FROM tool_grants
			WHERE session_id = $1 AND user_id = $2 AND trust = $3 AND created_at >= $4`, p.Session, p.User, p.Trust, since)
		if err != nil {
			return Decision{}, fmt.Errorf("tool grants: %w", err)
		}
	}
	if fetches(p, t, a) {
		var err error
		if c.known, err = namedAddress(ctx, p, a); err != nil {
			return Decision{}, err
		}
	}
	return c.decide(), nil
}

// place is where a vault is and how names in it are resolved.
func place(v *vault.Vault) (path string, resolve func(string) (string, bool)) {
	if v == nil {
		return "", nil
	}
	return v.Path(), func(name string) (string, bool) {
		d, err := v.Resolve(v.Path(), name)
		if err != nil {
			return "", false
		}
		if d.Inside {
			return d.Rel, true
		}
		return d.Path, true
	}
}

const (
	ignoreFile = ".parachuteignore"
	maxIgnored = 64 << 10 // bytes of it that count
)

// IgnoreLines are the lines of v's .parachuteignore; none without the file. A
// file that cannot be read closes everything.
func IgnoreLines(v *vault.Vault) []string {
	if v == nil {
		return nil
	}
	f, err := v.Root().Open(ignoreFile)
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
