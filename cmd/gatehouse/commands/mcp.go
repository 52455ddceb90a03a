package commands

import (
	"net/http"
	"os/signal"
	"strings"
	"syscall"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/cmd/gatehouse/control/bridge"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/web/auth/keyfile"
)

// An MCP lets another agent on this machine use the running gateway.
type MCP struct {
	KeyFile string   `name:"key-file" type:"path" placeholder:"FILE" help:"File, mode 0600, with the API key to use; without it the key for local tools, which is the owner's."`
	Scope   []string `default:"chat,read,send" placeholder:"SCOPE" help:"What the agent may use, of the key's scopes: chat, read, send and admin (pairing requests)."`
}

func (c *MCP) Help() string {
	return "Speaks the Model Context Protocol on standard input and output, for agents that start this program, such as Claude Desktop. The gateway must run. docs/mcp-server.md lists the tools and shows how to add it."
}

func (c *MCP) Run(p *console.Process) error {
	if p.Stdin == nil {
		return core.Errorf(core.Invalid, "there is no standard input")
	}
	cfg, err := configs.Load()
	if err != nil {
		return err
	}
	dir, err := control.Dir(cfg.VaultPath)
	if err != nil {
		return err
	}
	file := c.KeyFile
	if file == "" {
		file = control.KeyFile(dir)
	}
	signal.Ignore(syscall.SIGPIPE) // a client that reads no more ends its session, before the program ends
	return bridge.Run(p.Context, bridge.Options{Client: control.Streams(dir), URL: "http://gatehouse/mcp", In: p.Stdin, Out: p.Stdout,
		Header: func() (http.Header, error) {
			secret, ok := keyfile.Read(file)
			if !ok {
				return nil, core.Errorf(core.Denied, "no API key in %s: it must be a file of yours with mode 0600. The gateway makes its own when it starts", file)
			}
			scopes := strings.Join(c.Scope, " ") // none are none: without the header, all of the key's
			return http.Header{"Authorization": {"Bearer " + secret}, "Gatehouse-Scopes": {scopes}}, nil
		}})
}
