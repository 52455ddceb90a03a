package adoption

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"gatehouse/core"
	"gatehouse/core/store"
)

// settingsFiles are the names of the original system's files of settings, by version,
// in .parachute of the vault.
var settingsFiles = []string{"server-config.json", "server.yaml", "config.yaml"}

// maxSettings bounds a file of settings, in bytes; maxKeys what is logged of it.
const (
	maxSettings = 256 << 10
	maxKeys     = 50
)

// becomes reports what becomes of each known key, by its path in the file.
// docs/adoption.md has the same table.
var becomes = map[string]string{
	"require_auth":            "not used: every request needs a key or a sign-in; GATEHOUSE_LOCALHOST_ACCESS=chat lets programs on this machine chat without one",
	"api_keys":                "not used: make new keys with 'gatehouse keys create'",
	"api_key":                 "not used: make a new key with 'gatehouse keys create'",
	"port":                    "not used: set GATEHOUSE_PORT to keep the port",
	"host":                    "not used: set GATEHOUSE_ADDR to listen elsewhere than on this machine",
	"expose_to_tailnet":       "not used: set GATEHOUSE_ADDR to the address in the tailnet, and GATEHOUSE_ALLOWED_HOSTS",
	"cors_origins":            "not used: set GATEHOUSE_CORS_ORIGINS",
	"default_model":           "not used: set GATEHOUSE_MODEL",
	"model":                   "not used: set GATEHOUSE_MODEL",
	"log_level":               "not used: set GATEHOUSE_LOG_LEVEL",
	"vault_path":              "not used: GATEHOUSE_VAULT_PATH names the vault",
	"claude_code_oauth_token": "not used: sign in with the Claude Code command line (docs/claude-code.md)",
}

// groups are the keys that hold other keys.
var groups = []string{"security", "server", "auth"}

var plainKey = core.Pattern(`^[A-Za-z][A-Za-z0-9_]{0,40}$`)

// settings logs what becomes of each key of the file at path, once for each content.
func (a Adopter) settings(ctx context.Context, path string) error {
	text, err := readSettings(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		a.Log.Warn("the original system's settings cannot be read; they are not used", "file", path, "err", err)
		return nil
	}
	key, hash := "adoption:"+filepath.Base(path), hashOf(text)
	if done, err := a.isDone(ctx, key, hash); err != nil || done {
		return err
	}
	a.explain(path, text)
	return a.DB.Tx(ctx, func(tx *store.Tx) error { return store.SetMetadata(ctx, tx, key, hash) })
}

func readSettings(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxSettings {
		return nil, errors.Join(err, fmt.Errorf("it is not a file of at most %d bytes", maxSettings))
	}
	return io.ReadAll(io.LimitReader(f, maxSettings))
}

// explain logs a line for each key. Values are never logged.
func (a Adopter) explain(path string, text []byte) {
	log := a.Log.With("file", path)
	var top map[string]any
	if yaml.Unmarshal(text, &top) != nil || top == nil { // JSON is YAML
		log.Warn("the original system's settings cannot be read; they are not used")
		return
	}
	keys := map[string]string{} // path in the file → its last name; at most those of the file
	for name, v := range top {
		inner, isMap := v.(map[string]any)
		if !isMap || !slices.Contains(groups, name) {
			keys[name] = name
			continue
		}
		for key := range inner {
			keys[name+"."+key] = key
		}
	}
	paths := make([]string, 0, len(keys))
	for path := range keys {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for i, path := range paths {
		if i == maxKeys {
			log.Warn("more keys are not used", "keys", len(paths)-maxKeys)
			break
		}
		what, known := becomes[snake(keys[path])]
		if !known {
			what = "not used"
		}
		if !plainKey().MatchString(keys[path]) {
			path = "a key with an unusual name"
		}
		log.Info("a setting of the original system", "key", path, "becomes", what)
	}
}

var upper = core.Pattern(`([a-z0-9])([A-Z])`)

// snake returns a key as require_auth, also where it is written requireAuth.
func snake(key string) string {
	return strings.ToLower(upper().ReplaceAllString(key, "${1}_${2}"))
}
