package stage

import (
	"fmt"
	"net"
	"os"

	"gatehouse/cmd/gatehouse/stage/scripted"
	"gatehouse/configs"
)

// providersFile returns the file next to the vault that has the address of the scripted
// models.
func providersFile(vault string) string { return vault + ".providers.yaml" }

// OpenCouncil serves scripted models on loopback and sets up cfg's council with them.
// stop ends them. It leaves the settings of an operator who has a provider, a file of
// providers or a council alone, and then returns no questions.
func OpenCouncil(cfg *configs.Config) (questions []string, stop func(), err error) {
	if cfg.HasProvider() || cfg.ProvidersFile != "" || len(cfg.Council) > 0 {
		return nil, func() {}, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("listen on loopback: %w", err)
	}
	file := providersFile(cfg.VaultPath)
	if err := os.WriteFile(file, []byte(scripted.Providers("http://"+l.Addr().String()+"/v1")), 0o600); err != nil {
		_ = l.Close()
		return nil, nil, fmt.Errorf("the providers of the demo: %w", err)
	}
	stop = Serve(l, scripted.Handler())
	cfg.ProvidersFile, cfg.Council = file, scripted.Members()
	cfg.CameFrom(configs.SourceDemo, "PROVIDERS_FILE", "COUNCIL")
	if err := cfg.Validate(); err != nil {
		stop()
		return nil, nil, err
	}
	return scripted.Questions(), stop, nil
}
