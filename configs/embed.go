package configs

import (
	"embed"
	"io/fs"
)

//go:embed all:sample-vault
var sampleVault embed.FS

//go:embed agents
var agents embed.FS

//go:embed prices.yaml
var prices []byte

// SampleVault returns the directory that the demo starts with; its root is the vault's.
func SampleVault() fs.FS {
	sub, err := fs.Sub(sampleVault, "sample-vault")
	if err != nil {
		panic(err) // the name is constant and valid
	}
	return sub
}

// Agents returns the files of the agents that come with the program, and how to use them.
func Agents() fs.FS {
	sub, err := fs.Sub(agents, "agents")
	if err != nil {
		panic(err) // the name is constant and valid
	}
	return sub
}

// Prices returns the YAML text of what models cost. The caller gets a copy.
func Prices() []byte { return append([]byte(nil), prices...) }
