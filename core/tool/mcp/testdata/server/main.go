// Command server is an MCP server for tests, spoken to by its standard streams.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type input struct {
	Text string `json:"text"`
	N    int    `json:"n,omitempty"`
}

func main() {
	wait := flag.String("wait", "", "do not answer before this file is there")
	noise := flag.Int("noise", 0, "lines on standard output before the first message")
	say := flag.String("say", "", "text on standard error")
	exit := flag.Int("exit", -1, "end at once, with this code")
	tools := flag.Int("tools", 0, "how many more tools there are")
	flag.Parse()
	if *say != "" {
		fmt.Fprintln(os.Stderr, *say)
	}
	for i := range *noise {
		fmt.Printf("Welcome %d!\n", i)
	}
	if *exit >= 0 {
		os.Exit(*exit)
	}
	for *wait != "" {
		if _, err := os.Stat(*wait); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	add(s, "echo", true, func(_ context.Context, in input) (*mcp.CallToolResult, error) { return text(in.Text), nil })
	add(s, "env", true, func(context.Context, input) (*mcp.CallToolResult, error) {
		return text(strings.Join(os.Environ(), "\n")), nil
	})
	add(s, "pid", true, func(context.Context, input) (*mcp.CallToolResult, error) {
		return text(fmt.Sprint("pid ", os.Getpid())), nil
	})
	add(s, "read", true, func(_ context.Context, in input) (*mcp.CallToolResult, error) {
		b, err := os.ReadFile(in.Text)
		return text(string(b)), err
	})
	add(s, "write", false, func(_ context.Context, in input) (*mcp.CallToolResult, error) {
		return text("written"), os.WriteFile(in.Text, []byte("by the server"), 0o600)
	})
	add(s, "dial", false, func(ctx context.Context, in input) (*mcp.CallToolResult, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", in.Text)
		if err == nil {
			err = c.Close()
		}
		return text("connected"), err
	})
	add(s, "crash", false, func(context.Context, input) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "it is all over")
		os.Exit(3)
		return nil, nil
	})
	add(s, "hang", false, func(ctx context.Context, in input) (*mcp.CallToolResult, error) {
		_ = os.WriteFile(in.Text+".begun", nil, 0o600)
		<-ctx.Done()
		_ = os.WriteFile(in.Text+".ended", nil, 0o600)
		return nil, ctx.Err()
	})
	add(s, "long", true, func(_ context.Context, in input) (*mcp.CallToolResult, error) {
		return text(strings.Repeat("é", in.N)), nil
	})
	add(s, "picture", true, func(context.Context, input) (*mcp.CallToolResult, error) {
		png := []byte("\x89PNG\r\n\x1a\n and so on")
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "look:"}, &mcp.ImageContent{Data: png, MIMEType: "image/png"},
			&mcp.ImageContent{Data: []byte("no picture"), MIMEType: "image/png"}, &mcp.AudioContent{Data: []byte("la la"), MIMEType: "audio/wav"},
			&mcp.ResourceLink{URI: "file:///x", Name: "x"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///y", Text: "inside y"}},
		}}, nil
	})
	add(s, "data", true, func(_ context.Context, in input) (*mcp.CallToolResult, error) {
		r := &mcp.CallToolResult{StructuredContent: map[string]any{"answer": 42}}
		if in.N > 0 {
			r.Content = []mcp.Content{&mcp.TextContent{Text: `{"answer": 42}`}}
		}
		return r, nil
	})
	add(s, "fail", true, func(context.Context, input) (*mcp.CallToolResult, error) {
		return nil, errors.New("no such note, \x1b[31mreally")
	})
	add(s, "child", false, func(context.Context, input) (*mcp.CallToolResult, error) {
		c := exec.Command("/bin/sleep", "1000")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		err := c.Start()
		if err != nil {
			return nil, err
		}
		return text(fmt.Sprint("pid ", c.Process.Pid)), nil
	})
	add(s, "more", false, func(context.Context, input) (*mcp.CallToolResult, error) {
		add(s, "grown", true, func(context.Context, input) (*mcp.CallToolResult, error) { return text("grown"), nil })
		return text("there is one more"), nil
	})
	for i := range *tools {
		add(s, fmt.Sprintf("tool.number %d", i), true, func(context.Context, input) (*mcp.CallToolResult, error) { return text("x"), nil })
	}
	in := io.NopCloser(bufio.NewReader(os.Stdin))
	if err := s.Run(context.Background(), &mcp.IOTransport{Reader: in, Writer: os.Stdout}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func add(s *mcp.Server, name string, readOnly bool, f func(context.Context, input) (*mcp.CallToolResult, error)) {
	t := &mcp.Tool{Name: name, Description: "Does " + name + ".", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: readOnly}}
	mcp.AddTool(s, t, func(ctx context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		r, err := f(ctx, in)
		return r, nil, err
	})
}
