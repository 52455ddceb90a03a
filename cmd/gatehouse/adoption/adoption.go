// Package adoption takes over what the original system has next to its database:
// its bots file becomes ours, and the keys of its server's settings are named with
// what becomes of them. It changes nothing in a vault without these files.
package adoption

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"gatehouse/configs"
	"gatehouse/configs/former"
	"gatehouse/configs/live"
	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/adopt"
)

// People grant access to users that the original system allowed.
type People interface {
	AdoptAllowed(ctx context.Context, tx *store.Tx, bot, platform string, ids []string, trust core.Trust) (adopt.Result, error)
}

// An Adopter takes the files of one vault over.
type Adopter struct {
	Config   *configs.Config
	Settings *live.Settings
	DB       *store.DB
	People   People
	Log      *slog.Logger
}

// botsKey is where the metadata keeps the hash of the bots file that was taken over,
// so that access that was revoked since is not granted again.
const botsKey = "adoption:bots"

// by is who audit rows of an adoption name.
var by = core.Actor{Via: "upkeep"}

// Run takes over the files that are the original system's, and logs what it took
// over, without any value that may be a secret. It may be interrupted and run again.
func (a Adopter) Run(ctx context.Context) error {
	if o := a.Config.OriginalBots(); o != nil {
		if err := a.bots(ctx, o); err != nil {
			return fmt.Errorf("take over %s: %w", o.Path, err)
		}
	}
	for _, name := range settingsFiles {
		if err := a.settings(ctx, filepath.Join(a.Config.VaultPath, ".parachute", name)); err != nil {
			return fmt.Errorf("read the original system's %s: %w", name, err)
		}
	}
	return nil
}

func (a Adopter) bots(ctx context.Context, o *former.File) error {
	hash := hashOf(o.Text)
	if done, err := a.isDone(ctx, botsKey, hash); err != nil {
		return err
	} else if !done {
		if err := a.access(ctx, o, hash); err != nil {
			return err
		}
		if err := a.stop(ctx, o); err != nil {
			return err
		}
	}
	kept, err := replace(o.Path, o.Text, func(kept string) []byte { return former.Format(o.Usable(), filepath.Base(kept)) })
	if err != nil { // it is read as it is
		a.Log.Warn("the original system's bots file is used as it is: it could not be replaced", "file", o.Path, "err", err)
		return nil
	}
	var names []string
	for _, b := range o.Usable() {
		names = append(names, b.Platform)
	}
	a.Log.Info("the original system's bots file was taken over", "file", o.Path, "kept", kept, "bots", strings.Join(names, " "))
	return nil
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// isDone reports whether the metadata has value under key.
func (a Adopter) isDone(ctx context.Context, key, value string) (bool, error) {
	have, _, err := store.Metadata(ctx, a.DB, key)
	return have == value, err
}

// access grants access to the allowed users of every bot, with or without a token.
func (a Adopter) access(ctx context.Context, o *former.File, hash string) error {
	taken := make([]adopt.Result, len(o.Bots))
	wrong := make([]int, len(o.Bots))
	err := a.DB.Tx(ctx, func(tx *store.Tx) (err error) {
		counts := map[string]any{}
		for i, b := range o.Bots {
			trust, _ := core.ParseTrust(b.DMTrust)
			ids := userIDs(b.Allowed)
			wrong[i] = len(b.Allowed) - len(ids)
			if taken[i], err = a.People.AdoptAllowed(ctx, tx, b.Platform, b.Platform, ids, trust); err != nil {
				return err
			}
			counts[b.Platform] = taken[i].Admitted
		}
		return errors.Join(store.SetMetadata(ctx, tx, botsKey, hash), store.Audit(ctx, tx, by, "bots.adopt", filepath.Base(o.Path), counts))
	})
	if err != nil {
		return err
	}
	for i, b := range o.Bots {
		a.report(o, b, taken[i], wrong[i])
	}
	if len(o.Left) > 0 {
		a.Log.Warn("fields of the original system's bots file have no equivalent and are not used", "fields", strings.Join(o.Left, " "))
	}
	return nil
}

// userIDs returns those that can be ids: digits.
func userIDs(given []string) (ids []string) {
	for _, id := range given {
		if id != "" && len(id) <= 20 && strings.Trim(id, "0123456789") == "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// maxNamed bounds the ids in one line of the log.
const maxNamed = 20

func named(ids []string) string {
	if len(ids) > maxNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:maxNamed], " "), len(ids)-maxNamed)
	}
	return strings.Join(ids, " ")
}

// report logs what became of one bot.
func (a Adopter) report(o *former.File, b former.Bot, t adopt.Result, wrong int) {
	if len(b.Allowed) == 0 && !b.Token.IsSet() {
		return
	}
	log := a.Log.With("bot", b.Platform)
	log.Info("allowed users of the original system have access", "admitted", t.Admitted, "had_access", t.Had, "level", b.DMTrust)
	if len(t.Refused) > 0 {
		log.Warn("allowed users were denied or blocked later and have no access: approve them in the panel if they are to have it", "users", named(t.Refused))
	}
	if len(t.Unlisted) > 0 {
		log.Warn("users were approved but are not in allowed_users; they have access: revoke it in the panel if they are not to have it", "users", named(t.Unlisted))
	}
	if wrong > 0 {
		log.Warn("entries of allowed_users are no user ids and are not used", "entries", wrong)
	}
	usable := false
	for _, u := range o.Usable() {
		usable = usable || u.Platform == b.Platform
	}
	switch {
	case !b.Token.IsSet():
	case !usable:
		log.Warn("the bot of the original system's file is not used: a setting configures this bot, or the token is malformed")
	case !b.Enabled:
		log.Info("the bot was disabled and stays stopped: start it in the panel")
	}
}

// stop keeps disabled bots stopped.
func (a Adopter) stop(ctx context.Context, o *former.File) error {
	for _, b := range o.Usable() {
		if b.Enabled {
			continue
		}
		err := a.Settings.Change(ctx, by, live.Change{Subject: "bot " + b.Platform, Detail: map[string]any{"off": true}, Edit: func(ch *configs.Changes) {
			c := ch.Bots[b.Platform]
			c.Off = true
			ch.Bots[b.Platform] = c
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// maxKept bounds the files that are kept of several adoptions.
const maxKept = 100

// replace keeps text, the content of path, in a file next to it, and writes what
// content makes with that file's name in its place. Both are for their owner only.
func replace(path string, text []byte, content func(kept string) []byte) (kept string, err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	kept, err = keep(path, text)
	if err != nil {
		return "", err
	}
	part := path + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := write(part, content(kept)); err != nil {
		return "", errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, path); err != nil {
		return "", err
	}
	return kept, core.SyncDir(filepath.Dir(path))
}

// keep writes text next to path, unless it is there already, and returns where.
func keep(path string, text []byte) (string, error) {
	for i := 1; i <= maxKept; i++ {
		to := path + ".original"
		if i > 1 {
			to = fmt.Sprintf("%s.original-%d", path, i)
		}
		have, err := os.ReadFile(to)
		switch {
		case err == nil && string(have) == string(text):
			return to, os.Chmod(to, 0o600)
		case errors.Is(err, fs.ErrNotExist):
			if err := write(to, text); err != nil {
				return "", errors.Join(err, os.Remove(to))
			}
			return to, nil
		case err != nil:
			return "", err
		}
	}
	return "", fmt.Errorf("there are %d kept files next to %s: move some of them away", maxKept, path)
}

// write makes a new file and has it on the disk.
func write(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}
