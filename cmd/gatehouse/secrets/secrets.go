// Package secrets keeps the secrets in the environment from other processes.
package secrets

import (
	"errors"
	"os"
	"slices"

	"gatehouse/configs"
)

// Close takes the secrets of cfg, which has been loaded, out of this
// process's environment and closes the process to others of its user. The
// variables that MCP_ENV names stay readable for the gateway itself alone.
func Close(cfg *configs.Config) error {
	names := cfg.SecretNames()
	err := wipeEnviron(slices.Concat(names, cfg.MCPEnv))
	for _, name := range names {
		err = errors.Join(err, os.Unsetenv(name))
	}
	return errors.Join(err, closeProcess())
}
