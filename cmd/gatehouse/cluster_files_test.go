package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"gatehouse/core/store/storetest"
)

// Docker is not needed for these: the files are read as they are, and what they start is started as
// processes.

const (
	clusterFile = "../../configs/compose-cluster.yaml"
	proxyFile   = "../../configs/haproxy/haproxy.cfg"
)

// A composeService is what the tests read of a service.
type composeService struct {
	Image, Hostname string
	Command         []string
	Environment     map[string]string
	Secrets         []string
	Ports           []string
	Volumes         []string
	Networks        any
	Healthcheck     struct{ Test []string }
	DependsOn       any `yaml:"depends_on"`
}

type composeFile struct {
	Services map[string]composeService
	Networks map[string]any
	Volumes  map[string]any
	Secrets  map[string]struct{ File string }
}

func clusterServices(t *testing.T) (c composeFile, gateways []string) {
	t.Helper()
	text, err := os.ReadFile(clusterFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	for name, s := range c.Services {
		if s.Image == "gatehouse" {
			gateways = append(gateways, name)
		}
	}
	slices.Sort(gateways)
	return c, gateways
}

func TestTheClusterFileHasThreeStandbysOnOneVaultAndOneDatabase(t *testing.T) {
	t.Parallel()
	c, gateways := clusterServices(t)
	if len(gateways) != 3 || len(c.Services) != 5 {
		t.Fatalf("gateways %v among %d services", gateways, len(c.Services))
	}
	first := c.Services[gateways[0]]
	for _, name := range gateways {
		s := c.Services[name]
		if strings.Join(s.Command, " ") != "serve --standby" || s.Hostname != name {
			t.Errorf("%s runs %q as host %q", name, s.Command, s.Hostname)
		}
		if !slices.Equal(s.Volumes, first.Volumes) || s.Environment["GATEHOUSE_DATABASE_URL"] != first.Environment["GATEHOUSE_DATABASE_URL"] {
			t.Errorf("%s has another vault or database than %s", name, gateways[0])
		}
		for _, want := range []string{"vault:/vault", "keys:/vault-keys"} {
			if !slices.Contains(s.Volumes, want) {
				t.Errorf("%s lacks the volume %s", name, want)
			}
		}
		if s.Environment["GATEHOUSE_DATABASE_URL"] == "" {
			t.Errorf("%s has its database in a file", name)
		}
	}
}

func TestTheClusterFilePublishesHAProxyOnLoopbackAlone(t *testing.T) {
	t.Parallel()
	c, gateways := clusterServices(t)
	for name, s := range c.Services {
		if name == "haproxy" && len(s.Ports) == 1 && strings.HasPrefix(s.Ports[0], "127.0.0.1:") {
			continue
		}
		if len(s.Ports) > 0 || name == "haproxy" {
			t.Errorf("%s publishes %v", name, s.Ports)
		}
	}
	fixed, _ := yaml.Marshal(c.Services["haproxy"].Networks)
	for _, name := range gateways {
		if at := c.Services[name].Environment["GATEHOUSE_TRUSTED_PROXIES"]; at == "" || !strings.Contains(string(fixed), "ipv4_address: "+at) {
			t.Errorf("%s trusts %q, and HAProxy is at %s", name, at, fixed)
		}
	}
}

func TestTheClusterFileIsWhole(t *testing.T) {
	t.Parallel()
	c, _ := clusterServices(t)
	for name, s := range c.Services {
		if len(s.Healthcheck.Test) < 2 {
			t.Errorf("%s has no health check", name)
		}
		for _, secret := range s.Secrets {
			if !strings.HasPrefix(c.Secrets[secret].File, "./secrets/") {
				t.Errorf("%s has the secret %s, which no file has", name, secret)
			}
		}
		for setting, value := range s.Environment {
			if file, ok := strings.CutPrefix(value, "/run/secrets/"); ok && !slices.Contains(s.Secrets, file) {
				t.Errorf("%s: %s names a secret that it does not have", name, setting)
			}
			if strings.Contains(setting, "PASSWORD") != strings.HasSuffix(setting, "PASSWORD_FILE") || strings.Contains(setting, "TOKEN") != strings.HasSuffix(setting, "TOKEN_FILE") {
				t.Errorf("%s: %s is not read from a file", name, setting)
			}
		}
		for _, v := range s.Volumes {
			source, _, _ := strings.Cut(v, ":")
			if _, ok := c.Volumes[source]; !ok && !strings.HasPrefix(source, "./configs/") {
				t.Errorf("%s mounts %s, which is not declared", name, v)
			}
		}
		names, _ := yaml.Marshal(s.Networks)
		for network := range c.Networks {
			names = []byte(strings.ReplaceAll(string(names), network, ""))
		}
		if s.Networks == nil || regexp.MustCompile(`(?m)^[a-z- ]*[a-z]+:?$`).Match(names) {
			t.Errorf("%s is in a network that is not declared: %s", name, names)
		}
	}
	if c.Services["postgres"].Environment["POSTGRES_PASSWORD_FILE"] != c.Services["one"].Environment["GATEHOUSE_DATABASE_PASSWORD_FILE"] {
		t.Error("gateways and database have different passwords")
	}
}

func TestHAProxyAcceptsTheClustersFile(t *testing.T) {
	t.Parallel()
	haproxy := installed(t, "haproxy")
	if out, err := exec.Command(haproxy, "-c", "-f", proxyFile).CombinedOutput(); err != nil || strings.Contains(string(out), "WARNING") {
		t.Errorf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(proxyFile)
	if err != nil {
		t.Fatal(err)
	}
	c, gateways := clusterServices(t)
	var servers []string
	for _, m := range regexp.MustCompile(`(?m)^\tserver (\w+) (\w+):3333$`).FindAllStringSubmatch(string(text), -1) {
		if m[1] == m[2] {
			servers = append(servers, m[1])
		}
	}
	slices.Sort(servers)
	if !slices.Equal(servers, gateways) {
		t.Errorf("the servers are %v, the gateways %v", servers, gateways)
	}
	// What the two share with the recipe for machines.
	recipe := recipeIn(t, "standby", "haproxy")
	for line := range strings.Lines(string(text)) {
		for _, same := range []string{"\toption httpchk", "\thttp-check", "\ttimeout", "\thttp-request del-header"} {
			if strings.HasPrefix(line, same) && !strings.Contains(recipe, line) {
				t.Errorf("docs/standby.md does not have %q", line)
			}
		}
	}
	if check := strings.Join(c.Services["haproxy"].Healthcheck.Test, " "); !strings.Contains(check, "127.0.0.1:8404/healthz") {
		t.Errorf("the health check is %q", check)
	}
}

// The gateways start at the same moment on an empty vault and an empty database, as the containers do.
func TestPostgres_OfTheClusterFilesGatewaysOneServesUntilNoneIsLeft(t *testing.T) {
	storetest.PostgresOnly(t, "the file has a server")
	t.Parallel()
	haproxy := installed(t, "haproxy")
	c, gateways := clusterServices(t)
	sim, dir := newSim(t), shortDir(t)
	for file, text := range map[string]string{"admin_password": cliPassword, "telegram_token": sim.Token()} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(proxyFile)
	if err != nil {
		t.Fatal(err)
	}
	front, health, database := freePort(t), freePort(t), storetest.Fresh(t)
	conf := strings.NewReplacer("bind :3333", "bind "+front, "127.0.0.1:8404", health, " resolvers docker init-addr none", "", "log stdout format raw daemon notice", "").Replace(string(text))
	procs := map[string]*proc{}
	for _, name := range gateways {
		h := &home{t, dir, map[string]string{"HOME": dir, "PATH": os.Getenv("PATH"), "TMPDIR": dir, "XDG_RUNTIME_DIR": filepath.Join(dir, name),
			"GATEHOUSE_VAULT_PATH": filepath.Join(dir, "vault"), "GATEHOUSE_ADDR": freePort(t), "GATEHOUSE_LOG_LEVEL": "debug", "GATEHOUSE_LOG_FORMAT": "text", "GATEHOUSE_TELEGRAM_API_URL": sim.URL()}}
		for setting, value := range c.Services[name].Environment {
			h.env[setting] = strings.Replace(value, "/run/secrets", dir, 1)
		}
		delete(h.env, "GATEHOUSE_DATABASE_PASSWORD_FILE") // the test's server asks for none
		h.env["GATEHOUSE_DATABASE_URL"], h.env["GATEHOUSE_METRICS_ADDR"], h.env["GATEHOUSE_TRUSTED_PROXIES"] = database, freePort(t), "127.0.0.1"
		if err := os.Mkdir(h.env["XDG_RUNTIME_DIR"], 0o700); err != nil {
			t.Fatal(err)
		}
		conf = strings.Replace(conf, name+":3333", h.env["GATEHOUSE_ADDR"], 1)
		procs[name] = h.start(nil, c.Services[name].Command...)
	}
	if err := os.WriteFile(filepath.Join(dir, "haproxy.cfg"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	runProxy(t, front, exec.Command(haproxy, "-db", "-f", filepath.Join(dir, "haproxy.cfg")))
	status := func(url string) (code int) {
		resp, err := http.Get(url)
		if err != nil {
			return 0
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return 0
		}
		return resp.StatusCode
	}
	for left := len(procs); left > 0; left-- {
		var serving string
		for _, p := range procs {
			p.sees(func() bool {
				serving = ""
				for name, p := range procs {
					if p.ended() {
						t.Fatalf("%s has ended: %s", name, p.err.String())
					}
					if strings.Contains(p.err.String(), "msg=serving") {
						serving += name
					}
				}
				return serving != ""
			})
			break
		}
		p := procs[serving]
		if p == nil {
			t.Fatalf("more than one serves: %s", serving)
		}
		p.sees(func() bool {
			return status("http://"+front+"/readyz") == 200 && status("http://"+front+"/admin/login") == 200 && status("http://"+health+"/healthz") == 200
		})
		_ = p.cmd.Process.Kill()
		p.end()
		delete(procs, serving)
	}
	if end := "http://" + front + "/readyz"; status(end) != 503 {
		t.Errorf("without a gateway it answers %d", status(end))
	}
}

// A slow database delays /readyz, and a bot that is refused makes it 503; the panel must be reached.
func TestTheProxyOfAClusterKeepsAGatewayThatIsSlowOrWhoseBotsHaveFailed(t *testing.T) {
	t.Parallel()
	haproxy := installed(t, "haproxy")
	var asked atomic.Int64
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			_, _ = io.WriteString(w, "the panel")
			return
		}
		defer asked.Add(1)
		time.Sleep(800 * time.Millisecond)
		if r.URL.Query().Get("bots") != "false" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(gateway.Close)
	b, err := os.ReadFile(proxyFile)
	if err != nil {
		t.Fatal(err)
	}
	front, dir := freePort(t), shortDir(t)
	conf := strings.NewReplacer("bind :3333", "bind "+front, "127.0.0.1:8404", freePort(t), "one:3333", strings.TrimPrefix(gateway.URL, "http://"),
		"two:3333", freePort(t), "three:3333", freePort(t), " resolvers docker init-addr none", "", "log stdout format raw daemon notice", "").Replace(string(b))
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	runProxy(t, front, exec.Command(haproxy, "-db", "-f", filepath.Join(dir, "conf")))
	for end := time.Now().Add(patience); asked.Load() < 5; time.Sleep(10 * time.Millisecond) { // a server counts as up until checks fail
		if time.Now().After(end) {
			t.Fatalf("its readiness was asked for %d times", asked.Load())
		}
	}
	resp, err := http.Get("http://" + front + "/admin")
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("the panel is answered %d, %v", resp.StatusCode, err)
	}
}

func TestTheHAProxyRecipeForSeveralGatewaysSendsEachNameToItsOwn(t *testing.T) {
	t.Parallel()
	haproxy := installed(t, "haproxy")
	addr, dir := freePort(t), shortDir(t)
	conf := "defaults\n\tmode http\n\ttimeout connect 2s\n\ttimeout client 10m\n\ttimeout server 10m\nfrontend public\n\tbind " + addr + "\n" + recipeIn(t, "scale", "haproxy") + "\n"
	for _, name := range []string{"sales", "support"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
		t.Cleanup(s.Close)
		conf += "backend " + name + "\n\tserver one " + s.Listener.Addr().String() + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	runProxy(t, addr, exec.Command(haproxy, "-db", "-f", filepath.Join(dir, "conf")))
	for host, want := range map[string]string{"sales.example.org": "sales", "SUPPORT.example.org:443": "support"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil || string(got) != want {
			t.Errorf("%s reaches %q, %v", host, got, err)
		}
	}
}
