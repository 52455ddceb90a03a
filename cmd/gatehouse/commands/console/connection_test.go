package console

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"gatehouse/configs"
)

// sudo takes the settings of the unit away, so that the gateway's user alone is not enough.
func TestACommandThatCannotOpenTheVaultNamesTheOneThatCan(t *testing.T) {
	p, cfg := &Process{Demo: "demo"}, &configs.Config{VaultPath: "/var/lib/gatehouse"}
	for _, bad := range []error{fs.ErrNotExist, fs.ErrPermission} {
		text := fmt.Sprint(p.vaultFault(cfg, &fs.PathError{Op: "open", Path: cfg.VaultPath, Err: bad}))
		if !strings.Contains(text, cfg.VaultPath) || !strings.Contains(text, "'sudo gatehousectl ...'") || strings.Contains(text, "sudo -u") {
			t.Errorf("%v: %s", bad, text)
		}
	}
}
