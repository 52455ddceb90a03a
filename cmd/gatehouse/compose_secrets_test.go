package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

var (
	// commentedOut is a line of a compose file that an operator may take into use.
	commentedOut = regexp.MustCompile(`(?m)^( +)# (GATEHOUSE_[A-Z_]+_FILE: .*|- [a-z_]+|[a-z_]+:|  file: .*)$`)
	secretMade   = regexp.MustCompile(`printf %s '[^']*' +> (secrets/[a-z_]+)`)
)

// A secret that lacks one of its three places is a file that is missing in the container,
// and the gateway does not start.
func TestEverySecretOfTheComposeFilesIsInAllItsPlaces(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"compose.yaml", "compose-cluster.yaml"} {
		b, err := os.ReadFile(filepath.Join("../../configs", name))
		if err != nil {
			t.Fatal(err)
		}
		made := map[string][]string{name: nil} // files that are made, by where it stands
		for _, m := range secretMade.FindAllStringSubmatch(string(b), -1) {
			made[name] = append(made[name], m[1])
		}
		if name == "compose.yaml" {
			for _, m := range secretMade.FindAllStringSubmatch(string(page), -1) {
				made["docs/deployment.md"] = append(made["docs/deployment.md"], m[1])
			}
		}
		for all, text := range map[bool]string{false: string(b), true: commentedOut.ReplaceAllString(string(b), "$1$2")} {
			var c composeFile
			if err := yaml.Unmarshal([]byte(text), &c); err != nil {
				t.Fatalf("%s, with all: %v: %v", name, all, err)
			}
			for of, s := range c.Services {
				for setting, at := range s.Environment {
					secret, ok := strings.CutPrefix(at, "/run/secrets/")
					if !ok {
						continue
					}
					if !slices.Contains(s.Secrets, secret) || c.Secrets[secret].File != "./secrets/"+secret {
						t.Errorf("%s, with all: %v: %s of %s names %s, which is not a secret of it with a file", name, all, setting, of, at)
					}
				}
				for _, secret := range s.Secrets {
					if !slices.ContainsFunc(slices.Collect(maps.Values(s.Environment)), func(v string) bool { return v == "/run/secrets/"+secret }) {
						t.Errorf("%s, with all: %v: %s has the secret %s, which no setting names", name, all, of, secret)
					}
				}
			}
			if _, ok := c.Secrets["anthropic_api_key"]; ok != all {
				t.Errorf("%s, with all: %v: a key for a model: %v", name, all, ok)
			}
			for _, s := range c.Secrets {
				for where, files := range made {
					if !all && !slices.Contains(files, strings.TrimPrefix(s.File, "./")) {
						t.Errorf("%s does not say how %s is made", where, s.File)
					}
				}
			}
		}
	}
}
