package coretest

import (
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
)

// GoBuild returns "go build" with these arguments, as the running test was built: with
// its tags, but for the browser's, so that what is compiled already is in Go's
// cache. A few different flags would compile all that a program imports once
// more. With "-race" that is the test's own way of building, otherwise the
// program's: C is then compiled as it is for users.
func GoBuild(args ...string) *exec.Cmd {
	race := slices.Contains(args, "-race")
	flags := BuildFlags()
	if gc := builtWith("-gcflags"); race && gc != "" {
		flags = append(flags, "-gcflags="+gc)
	}
	cmd := exec.Command("go", slices.Concat([]string{"build"}, flags, args)...)
	cmd.Env = os.Environ()
	if !race {
		cmd.Env = slices.DeleteFunc(cmd.Env, func(kv string) bool { return strings.HasPrefix(kv, "CGO_CFLAGS=") })
	}
	return cmd
}

// BuildFlags returns those of the running test that decide what of other builds can
// be used: the tags, but for the browser's, and whether paths are trimmed.
func BuildFlags() []string {
	tags := strings.FieldsFunc(builtWith("-tags"), func(r rune) bool { return r == ',' })
	tags = slices.DeleteFunc(tags, func(tag string) bool { return tag == "browser" })
	if len(tags) == 0 {
		tags = []string{"sqlite_fts5"}
	}
	flags := []string{"-tags=" + strings.Join(tags, ",")}
	if builtWith("-trimpath") == "true" {
		flags = append(flags, "-trimpath")
	}
	return flags
}

// builtWith returns a flag of the running test's build, "" where it has none.
func builtWith(flag string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == flag {
				return s.Value
			}
		}
	}
	return ""
}
