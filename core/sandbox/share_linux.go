package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// What another implementation of Box needs of this package: the stage, the view
// of the system and the watcher are the same for each back end.

// Prepare returns s with its default limits, or an error where s or argv is invalid.
func Prepare(s Spec, argv []string) (Spec, error) {
	if err := check(s, argv); err != nil {
		return s, err
	}
	s.Limits = s.Limits.orDefaults()
	return s, nil
}

// StageOrder returns what the stage reads to become argv within s, which
// Prepare has returned.
func StageOrder(s Spec, argv []string) ([]byte, error) {
	order, err := json.Marshal(newOrder(s, argv))
	if err != nil {
		return nil, fmt.Errorf("order for the sandbox: %w", err)
	}
	return order, nil
}

// StageArgs returns the arguments of our own program that make it the stage.
// order and life are the numbers of its open files: the StageOrder, and a pipe
// that ends with the gateway.
func StageArgs(order, life int) []string {
	return []string{stageWord, strconv.Itoa(order), strconv.Itoa(life)}
}

// SystemFolders returns the directories of programs and libraries that every
// program sees read-only.
func SystemFolders() []string { return slices.Clone(system) }

// SystemFiles returns the files and directories of /etc that every program sees, as far
// as they exist.
func SystemFiles() []string { return slices.Clone(settings) }

// Accounts returns the files of /etc that replace the host's, by path. uid and
// gid are the numbers that the program has inside.
func Accounts(uid, gid int) map[string]string {
	ids := strings.NewReplacer(":"+insideID+":"+insideID+":", fmt.Sprintf(":%d:%d:", uid, gid))
	groups := strings.NewReplacer(":"+insideID+":", fmt.Sprintf(":%d:", gid))
	return map[string]string{
		"/etc/passwd": ids.Replace(passwdFile), "/etc/group": groups.Replace(groupFile), "/etc/hosts": hostsFile,
	}
}

// Cores returns how many processors a program may use at most.
func Cores() int { return cores() }

// Watch ends the process first, which must be the first of a pid namespace, as
// soon as all processes below it together pass a limit of s, or ctx ends. It
// returns when none is left, with the limit that was passed, which s.OnLimit
// was called with, or "". own is how many threads of the process first are not
// the program's.
func Watch(ctx context.Context, first, own int, s Spec) (why string) {
	limits, tell := s.Limits, s.OnLimit
	s.Limits.Processes += own
	s.OnLimit = nil
	why = watch(ctx, strings.NewReader(fmt.Sprintf("{\"child-pid\":%d}\n", first)), s, nil)
	if why == processWords(s.Limits) {
		why = processWords(limits)
	}
	if why != "" && tell != nil {
		tell(why)
	}
	return why
}

// MemoryText returns the text for a program that was ended because it used more memory
// than l.
func MemoryText(l Limits) string { return memoryWords(l.orDefaults()) }

// Try runs a program in box once. It returns "" on success, else what failed.
func Try(box Box) string {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	cmd, err := box.Command(ctx, Spec{Dir: "/tmp"}, "/bin/sh", "-c", "echo fine")
	if err != nil {
		return err.Error()
	}
	return tried(ctx, cmd)
}

// tried runs a program that prints "fine". It returns "" where that is all it
// printed, else what failed.
func tried(ctx context.Context, cmd *exec.Cmd) string {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Start()
	Release(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil || out.String() != "fine\n" {
		return strings.TrimSpace(fmt.Sprintf("%s %v", strings.TrimSpace(out.String()), errors.Join(err, ctx.Err())))
	}
	return ""
}
