package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core/coretest"
	"gatehouse/core/llm/llmtest"
)

// The recipes of docs/deployment.md and the files in configs/ are tried as
// they stand, with the tools that would read them. A tool that is missing
// skips its test; the checks on a bare machine install all of them.

const publicName = "gatehouse.example.org"

// tool is the path of a program, or skips the test.
func installed(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin") {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	t.Skipf("%s is not installed here, so this was NOT checked", name)
	return ""
}

// recipe is the code block of that language in docs/deployment.md with each
// word replaced; a word that is not there exactly once fails the test.
func recipe(t *testing.T, language string, replace ...string) string {
	t.Helper()
	return recipeIn(t, "deployment", language, replace...)
}

func recipeIn(t *testing.T, doc, language string, replace ...string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/" + doc + ".md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(page), "\n```"+language+"\n")
	block, _, end := strings.Cut(block, "\n```\n")
	if !ok || !end {
		t.Fatalf("docs/%s.md has no %s recipe", doc, language)
	}
	for i := 0; i < len(replace); i += 2 {
		if strings.Count(block, replace[i]) != 1 {
			t.Fatalf("the recipe does not have %q once", replace[i])
		}
		block = strings.Replace(block, replace[i], replace[i+1], 1)
	}
	return block
}

// freePort is an address for a program that has to be told one: nobody listens
// there at the moment, and nobody is given it by asking for any (port 0), which
// takes from 32768 on.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+mathrand.IntN(20_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// certificate writes a key and a certificate for the public name into dir.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: publicName}, DNSNames: []string{publicName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return pool
}

// runProxy starts a proxy and waits until it listens.
func runProxy(t *testing.T, addr string, cmd *exec.Cmd) {
	t.Helper()
	var out coretest.Log
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		if t.Failed() {
			t.Log(out.String())
		}
	})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); ; {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-tick.C:
		case <-done:
			t.Fatalf("the proxy ended:\n%s", out.String())
		case <-end:
			t.Fatalf("the proxy does not listen:\n%s", out.String())
		}
	}
}

// proxied is a client that reaches the public name at addr, from 127.0.0.2.
func proxied(t *testing.T, addr string, pool *x509.CertPool) *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	dial := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	tr := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial.DialContext(ctx, "tcp4", addr) },
		TLSClientConfig:   &tls.Config{RootCAs: pool, ServerName: publicName},
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: tr, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// behindProxy is a gateway with the settings that the page tells.
func behindProxy(t *testing.T) (*world, *llmtest.Server) {
	t.Helper()
	return newModelWorld(t, func(c *configs.Config) {
		c.AllowedHosts = values.List{publicName}
		if err := c.TrustedProxies.Decode("127.0.0.1,::1"); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTheNginxRecipeWorks(t *testing.T) {
	t.Parallel()
	nginx := installed(t, "nginx")
	w, model := behindProxy(t)
	dir, addr, plain := shortDir(t), freePort(t), freePort(t)
	pool := certificate(t, dir)
	servers := recipe(t, "nginx", "listen 443 ssl http2;", "listen "+addr+" ssl http2;", "listen [::]:443 ssl http2;", "",
		"listen 80;", "listen "+plain+";", "listen [::]:80;", "", "http://127.0.0.1:3333", "http://"+w.cfg.Addr,
		"/etc/letsencrypt/live/gatehouse.example.org/fullchain.pem", dir+"/cert.pem",
		"/etc/letsencrypt/live/gatehouse.example.org/privkey.pem", dir+"/key.pem")
	conf := "daemon off; master_process off; pid " + dir + "/pid; error_log stderr;\nevents {}\nhttp {\naccess_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		conf += kind + "_temp_path " + dir + "/" + kind + ";\n"
	}
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(conf+servers+"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	runProxy(t, addr, exec.Command(nginx, "-e", "stderr", "-p", dir, "-c", path))
	checkProxy(t, w, model, proxied(t, addr, pool))
	resp, err := proxied(t, plain, pool).Get("http://" + publicName + "/admin?x=1")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 301 || resp.Header.Get("Location") != "https://"+publicName+"/admin?x=1" {
		t.Errorf("plain HTTP: %d to %s", resp.StatusCode, resp.Header.Get("Location"))
	}
}

func TestTheCaddyRecipeWorks(t *testing.T) {
	t.Parallel()
	caddy := installed(t, "caddy")
	w, model := behindProxy(t)
	dir, addr := shortDir(t), freePort(t)
	pool := certificate(t, dir)
	_, port, _ := strings.Cut(addr, ":")
	site := recipe(t, "caddyfile", publicName+" {", "https://"+publicName+":"+port+" {\n\tbind 127.0.0.1\n\ttls "+dir+"/cert.pem "+dir+"/key.pem", "127.0.0.1:3333", w.cfg.Addr)
	path := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(path, []byte("{\n\tadmin off\n\tauto_https off\n}\n"+site+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(caddy, "run", "--config", path, "--adapter", "caddyfile")
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	runProxy(t, addr, cmd)
	checkProxy(t, w, model, proxied(t, addr, pool))
}

// checkProxy is what the page promises of a proxy.
func checkProxy(t *testing.T, w *world, model *llmtest.Server, client *http.Client) {
	t.Helper()
	send := func(method, path, host string, header http.Header, body io.Reader) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "https://"+publicName+path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		for k, v := range header {
			req.Header[k] = v
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	forged := http.Header{"X-Forwarded-For": {"203.0.113.9"}, "X-Forwarded-Host": {"evil.example"}, "X-Forwarded-Proto": {"http"}, "X-Real-Ip": {"203.0.113.9"}, "Forwarded": {"for=203.0.113.9"}}
	login := send("GET", "/admin/login", publicName, forged, nil)
	page, err := io.ReadAll(login.Body)
	if err != nil || login.StatusCode != 200 || login.ProtoMajor != 2 || login.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("the panel: %d %s %v, %v", login.StatusCode, login.Proto, login.Header, err)
	}
	w.logged("path=/admin/login", "from=127.0.0.2") // the client's own address, whatever it claims
	if strings.Contains(w.log.String(), "203.0.113.9") {
		t.Error("a forged address got through")
	}
	form := url.Values{"user": {"admin"}, "name": {"admin"}, "password": {worldPassword}}
	if m := csrfField.FindSubmatch(page); m != nil {
		form.Set("csrf", string(m[1]))
	}
	in := send("POST", "/admin/login", publicName, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Origin": {"https://" + publicName}}, strings.NewReader(form.Encode()))
	if len(in.Cookies()) == 0 || in.StatusCode >= 400 {
		t.Errorf("signing in: %d, cookies %v", in.StatusCode, in.Cookies())
	}
	for _, c := range in.Cookies() {
		if !c.Secure || !c.HttpOnly {
			t.Errorf("the cookie %s is not for TLS only: %v", c.Name, c)
		}
	}
	other, _ := io.ReadAll(send("GET", "/admin/login", "evil.example", nil, nil).Body)
	if strings.Contains(string(other), `type="password"`) {
		t.Error("the panel is shown under another name")
	}
	// The model says two words and then nothing: both must come through while it hangs.
	model.Script(llmtest.Reply{Text: []string{"one ", "two"}, Hang: true})
	stream := send("POST", "/api/chat", publicName, http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "Authorization": {"Bearer " + w.key}},
		strings.NewReader(`{"message":"Count."}`))
	if stream.StatusCode != 200 {
		t.Fatalf("the stream: %d", stream.StatusCode)
	}
	for lines := bufio.NewScanner(stream.Body); ; {
		if !lines.Scan() {
			t.Fatalf("the stream ended before the second word: %v", lines.Err())
		}
		if strings.Contains(lines.Text(), "two") {
			break
		}
	}
}

func TestTheUnitIsSoundAndHardened(t *testing.T) {
	analyze := installed(t, "systemd-analyze")
	unit, err := os.ReadFile("../../configs/systemd/gatehouse.service")
	if err != nil {
		t.Fatal(err)
	}
	const start = "ExecStart=/usr/local/bin/gatehouse serve"
	if strings.Count(string(unit), start) != 1 {
		t.Fatal("the unit starts something else")
	}
	if !strings.Contains(string(unit), "\nStartLimitIntervalSec=0\n") || strings.Contains(string(unit), "StartLimitBurst") {
		t.Error("systemd gives up after some starts")
	}
	if page, err := os.ReadFile("../../docs/mcp.md"); err != nil || !strings.Contains(string(unit), "\nMemoryDenyWriteExecute=yes\n") || !strings.Contains(string(page), "\nMemoryDenyWriteExecute=no\n") {
		t.Errorf("node is killed, and no page has the drop-in: %v", err)
	}
	path := filepath.Join(t.TempDir(), "gatehouse.service")
	text := strings.Replace(string(unit), start, "ExecStart="+program(t)+" serve", 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || strings.Contains(string(out), "gatehouse.service:") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=35", path).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security rates it worse than 3.5: %v\n%s", err, out)
	}
}

func TestTheAlertRulesAreSoundAndFire(t *testing.T) {
	promtool := installed(t, "promtool")
	for _, args := range [][]string{{"check", "config", "prometheus.yml"}, {"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = "../../configs/prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", args, err, out)
		}
	}
}

var metricName = regexp.MustCompile(`\bgatehouse_[a-z_]+`)

func TestEveryMetricOfTheAlertRulesExists(t *testing.T) {
	rules, err := os.ReadFile("../../configs/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/metrics.md") // which a test holds equal to the program
	if err != nil {
		t.Fatal(err)
	}
	names := metricName.FindAllString(string(rules), -1)
	if len(names) < 9 {
		t.Errorf("only %d metrics in the rules", len(names))
	}
	for _, name := range names {
		if !bytes.Contains(page, []byte("| `"+name+"` |")) {
			t.Errorf("%s is no metric of the gateway", name)
		}
	}
}

func TestEveryAlertIsOnThePageWithWhatToDo(t *testing.T) {
	rules, err := os.ReadFile("../../configs/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(Gatehouse[A-Za-z]+)` \\| [^|]+ \\| [^|]+ \\|$").FindAllSubmatch(page, -1) {
		listed[string(m[1])] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllSubmatch(rules, -1) {
		if !listed[string(m[1])] {
			t.Errorf("docs/metrics.md does not say what to do about %s", m[1])
		}
		delete(listed, string(m[1]))
	}
	for name := range listed {
		t.Errorf("docs/metrics.md lists %s, which is no alert", name)
	}
}

// What cannot be run without Docker is at least held together: the settings
// that image and compose file name exist, and the health check is a command.
func TestImageAndComposeNameSettingsThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, s := range configs.Default().Redacted() {
		known[s.Name], known[s.Name+"_FILE"] = true, true
	}
	setting := regexp.MustCompile(`GATEHOUSE_[A-Z_]+`)
	for _, file := range []string{"Dockerfile", "configs/compose.yaml", "configs/compose-cluster.yaml", "configs/systemd/gatehouse.service", "docs/deployment.md"} {
		b, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		names := setting.FindAllString(string(b), -1)
		for _, name := range names {
			if !known[name] {
				t.Errorf("%s names %s, which is no setting", file, name)
			}
		}
		if len(names) == 0 {
			t.Errorf("%s names no setting", file)
		}
	}
	dockerfile, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, check, _ := strings.Cut(string(dockerfile), "HEALTHCHECK")
	_, check, _ = strings.Cut(check, " CMD ")
	check, _, _ = strings.Cut(check, "\n")
	var args []string
	if err := json.Unmarshal([]byte(check), &args); err != nil || fmt.Sprint(args) != "[/gatehouse doctor --live]" {
		t.Errorf("the health check is %q: %v", check, err)
	}
}

// A tag can be moved to another image; a digest cannot.
func TestEveryBaseImageIsPinnedByItsDigest(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		image, ok := strings.CutPrefix(line, "FROM ")
		if !ok {
			continue
		}
		found++
		if image = strings.Fields(image)[0]; image != "scratch" && !regexp.MustCompile(`^[^@]+:[^@]+@sha256:[0-9a-f]{64}$`).MatchString(image) {
			t.Errorf("%s is not pinned", image)
		}
	}
	if found == 0 {
		t.Error("no image is named")
	}
}
