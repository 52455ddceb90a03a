package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"gatehouse/configs"
	"gatehouse/core/sandbox"
	"gatehouse/core/sandbox/container"
)

// openBox opens what isolates programs below full trust, as SANDBOX says. There
// is no falling back: auto is bubblewrap alone, because a container engine
// runs with more rights than the gateway, and whether to use one is the operator's
// decision.
func (a *app) openBox(self string) {
	if a.cfg.Sandbox != sandbox.Container {
		a.box, a.noBox = sandbox.Open(a.cfg.Sandbox, self)
		return
	}
	o, err := containerOptions(a.cfg, a.runtime, self)
	if err != nil {
		a.noBox = err.Error()
		return
	}
	o.Log = a.log
	if a.box, a.noBox = container.Open(o); a.box != nil {
		a.closing(func() error {
			container.Close(a.box)
			return nil
		})
	}
}

// containerOptions returns the options of the container back end, and makes its folder.
func containerOptions(cfg *configs.Config, runtime, self string) (container.Options, error) {
	dir := filepath.Join(runtime, "c")
	if err := makeRuntimeDir(runtime); err != nil {
		return container.Options{}, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return container.Options{}, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = dir
	}
	return container.Options{Stage: self, Dir: dir, Image: cfg.SandboxImage, Home: home}, nil
}

// probeIsolation says how the back ends stand that SANDBOX allows, for doctor.
func probeIsolation(cfg *configs.Config, self string) []sandbox.Backend {
	if cfg == nil || cfg.Sandbox != sandbox.Container {
		return sandbox.Probe(self)
	}
	runtime, err := runtimeDir(cfg.VaultPath)
	if err != nil {
		return []sandbox.Backend{{Name: sandbox.Container, Text: err.Error()}}
	}
	o, err := containerOptions(cfg, runtime, self)
	if err != nil {
		return []sandbox.Backend{{Name: sandbox.Container, Text: err.Error()}}
	}
	return []sandbox.Backend{container.Probe(o)}
}
