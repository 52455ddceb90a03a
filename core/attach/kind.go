package attach

import (
	"bytes"
	"mime"
	"net/http"
	"path"
	"strings"
	"unicode"

	"gatehouse/core"
	"gatehouse/core/texts"
)

// sniff returns the MIME type that the bytes say, without parameters.
func sniff(head []byte) string {
	m := core.Media{Data: head}
	if _, mime := m.Kind(); mime != "" {
		return mime
	}
	kind, _, err := mime.ParseMediaType(http.DetectContentType(head))
	if err != nil {
		return "application/octet-stream"
	}
	return kind
}

// programs are the first bytes of what a machine can run, and what the
// catalogue of texts calls it.
var programs = []struct{ head, text string }{
	{"\x7fELF", "program_linux"}, {"MZ", "program_windows"},
	{"\xfe\xed\xfa\xce", "program_macos"}, {"\xfe\xed\xfa\xcf", "program_macos"},
	{"\xce\xfa\xed\xfe", "program_macos"}, {"\xcf\xfa\xed\xfe", "program_macos"},
	{"\xca\xfe\xba\xbe", "program_macos_java"}, {"\xca\xfe\xba\xbf", "program_macos"},
	{"\x00asm", "program_webassembly"}, {"dex\n", "program_android"}, {"!<arch>\n", "program_archive"},
	{"\x4c\x00\x00\x00\x01\x14\x02\x00", "program_shortcut"},
}

// program reports what kind of program begins like that, "" for none. Source
// texts, scripts too, are texts: they are kept to be read and cannot be run.
func program(head []byte) string {
	for _, p := range programs {
		if !bytes.HasPrefix(head, []byte(p.head)) {
			continue
		}
		if p.head == "MZ" && !bytes.ContainsRune(head, 0) { // a text may begin so
			continue
		}
		return texts.Text(p.text)
	}
	return ""
}

// run are endings of files that a desktop runs on a double click, by their
// name alone: the vault may be synchronised to one.
var run = map[string]bool{
	".exe": true, ".com": true, ".scr": true, ".pif": true, ".bat": true, ".cmd": true, ".msi": true, ".msp": true, ".cpl": true,
	".lnk": true, ".hta": true, ".vbs": true, ".vbe": true, ".jse": true, ".wsf": true, ".wsh": true, ".ps1": true, ".reg": true,
	".jar": true, ".apk": true, ".deb": true, ".rpm": true, ".appimage": true, ".dll": true, ".sys": true, ".scf": true, ".url": true,
	".desktop": true, ".command": true, ".workflow": true, ".gadget": true, ".application": true, ".msix": true, ".appx": true,
}

func runnable(name string) bool {
	name = strings.TrimRightFunc(strings.ToLower(name), func(r rune) bool { return r == '.' || unicode.IsSpace(r) || !unicode.IsPrint(r) })
	return run[path.Ext(strings.ReplaceAll(name, "\u202e", ""))]
}

// endings are the ones that stored files of these types have.
var endings = map[string][]string{
	"image/png": {".png"}, "image/jpeg": {".jpg", ".jpeg", ".jpe"}, "image/gif": {".gif"}, "image/webp": {".webp"}, "application/pdf": {".pdf"},
}

// maxStored bounds a stored name, in bytes.
const maxStored = 80

// safeName returns a sender's name as a file may have it on any system, with the
// ending of its kind, and as it may be shown.
func safeName(name, kind string) (stored, shown string) {
	shown = core.CleanName(base(name))
	if shown == "" {
		shown = texts.Text("the_file")
	}
	ext := path.Ext(base(name))
	stem := plain(strings.TrimSuffix(base(name), ext))
	if ext = plain(ext); len(ext) > 12 {
		ext = ""
	}
	if ext != "" {
		ext = "." + ext
	}
	if right := endings[kind]; right != nil && !has(right, ext) {
		stem, ext = stem+strings.ReplaceAll(ext, ".", "_"), right[0]
	}
	for len(stem) > maxStored-len(ext) {
		r := []rune(stem)
		stem = string(r[:len(r)-1])
	}
	if stem == "" {
		stem = "file"
	}
	return stem + ext, shown
}

// plain returns a part of a name in characters that no system or shell minds.
func plain(s string) string {
	var b strings.Builder
	for _, r := range core.CleanName(s) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.Is(unicode.Mn, r), strings.ContainsRune("-_. ()+,@", r):
			b.WriteRune(r)
		case r != '…':
			b.WriteByte('_')
		}
	}
	return strings.Trim(b.String(), ". ")
}

func has(list []string, ext string) bool {
	for _, e := range list {
		if strings.EqualFold(e, ext) {
			return true
		}
	}
	return false
}

// base returns the last part of a path, as either system spells paths.
func base(name string) string { return name[strings.LastIndexAny(name, `/\`)+1:] }
