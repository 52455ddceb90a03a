//go:build browser

package admin_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/core/importer/report"
	"gatehouse/web/webtest"
)

// choose puts a file of so many bytes into the field, as the browser's own dialog does.
const choose = `((name, size) => {
	const all = new DataTransfer();
	all.items.add(new File([new Uint8Array(size).fill(32)], name));
	document.querySelector("input[type=file]").files = all.files;
	return document.querySelector("input[type=file]").files[0].name;
})`

// fits looks at the page in every window and both colours.
func fits(t *testing.T, b *webtest.Tab, name string) {
	t.Helper()
	for _, w := range windows {
		b.Look(w.width, 900, w.scheme)
		b.Eventually(fmt.Sprintf(`document.documentElement.clientWidth === %d && matchMedia("(prefers-color-scheme: %s)").matches`, w.width, w.scheme))
		at := fmt.Sprintf("%s-%d-%s", name, w.width, w.scheme)
		wellMannered(t, b, at)
		if over := webtest.Value[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
			t.Errorf("%s: %d px too wide", at, over)
		}
		if webtest.Shots() != "" {
			b.Keep("admin-"+at, b.WholePicture())
		}
	}
	b.Look(1280, 900, "light")
}

func (w *world) importing(list ...report.State) {
	w.imports.mu.Lock()
	defer w.imports.mu.Unlock()
	w.imports.list = list
}

// A file is checked and imported by keyboard; the page follows it to its end without a reload.
func TestImports_ByKeyboardFromTheFormToTheReport(t *testing.T) {
	s, b := atDesk(t, importPath)
	b.Away() // browsers log a refusal
	s.world.importing()
	b.Open(s.url + importPath)
	live(b)
	b.TabTo(`input[type=file]`)
	if got := webtest.Value[string](b, choose+`("claude.zip", 2000)`); got != "claude.zip" {
		t.Fatal(got)
	}
	b.TabTo(`input[name=dry_run]`)
	b.Press(" ")
	b.TabTo(`form[enctype] .primary`)
	running := report.State{ID: "new", State: report.Running, Report: report.Report{Name: "claude.zip", DryRun: true, Added: 3, Read: 1000, Size: 2000, Faults: []report.Entry{}}}
	s.world.importing(running)
	b.Press(kb.Enter)
	b.Says(`#fault`, "An import is running") // it was started elsewhere while the form was filled in
	s.world.importing()
	b.Open(s.url + importPath)
	live(b)
	_ = webtest.Value[string](b, choose+`("claude.zip", 2000)`)
	b.Focus(`input[name=dry_run]`)
	b.Press(" ")
	b.TabTo(`form[enctype] .primary`)
	b.Press(kb.Enter)
	b.Says(`#flash`, "The import runs.")
	if did := s.world.done(); len(did) != 1 || did[0] != fmt.Sprintf("import claude.zip %q of 1 at full, dry true, archive false", slices.Repeat([]byte(" "), 2000)) {
		t.Errorf("done %.200q", did)
	}
	s.world.importing(running)
	b.Open(s.url + importPath)
	live(b)
	b.Eventually(`window.sameDocument = true`)
	b.Says(`#running [role=status]`, "3 conversations")
	fits(t, b, "import-running")
	running.Report.Added, running.Report.Read = 7, 1800
	s.world.importing(running)
	b.Says(`#running [role=status]`, "7 conversations")
	b.Eventually(`document.querySelector("#running progress").value === 90`)
	b.TabTo(`#running button`)
	s.world.brought(false)
	b.Says(`#i-done`, "it has no messages")
	b.Says(`#i-failed`, "holiday.jpg is none of what can be imported")
	b.Eventually(`window.sameDocument === true && document.querySelector("#i-done a[download]").getAttribute("href") === "/admin/import/done/report"`)
	b.TabTo(`#i-done a[download]`)
}

func TestImports_AWrongFormSaysWhyNextToTheFields(t *testing.T) {
	s, b := atDesk(t, importPath)
	b.Away() // browsers log a refusal
	b.Write(`input[name=path]`, "relative"+kb.Enter)
	b.Says(`#fault`, "The path must be absolute")
	b.Eventually(`document.querySelector("#fault").role === "alert" && document.querySelector("[aria-invalid]").getAttribute("aria-describedby").includes("fault")`)
	fits(t, b, "import-fault")
	if did := s.world.done(); len(did) != 0 {
		t.Errorf("done %q", did)
	}
}

// A form with much to send is refused at once, and the page that stays during a long one follows.
func TestImports_ALargeFileIsRefusedUnreadAndFollowedWhileItIsSent(t *testing.T) {
	s, b := atDesk(t, importPath)
	b.Away() // browsers log a refusal
	s.world.importing()
	b.Open(s.url + importPath)
	live(b)
	s.world.importing(report.State{ID: "other", State: report.Running, Report: report.Report{Name: "other.zip", Faults: []report.Entry{}}})
	_ = webtest.Value[string](b, choose+`("large.zip", 96 << 20)`)
	b.Click(`form[enctype] .primary`)
	b.Says(`#fault`, "An import is running: wait for its end, or stop it.")
	b.Says(`#running-h`, "other.zip")
}
