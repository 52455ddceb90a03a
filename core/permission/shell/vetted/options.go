package vetted

import (
	"path"
	"slices"
	"strings"
)

// What the operands of a program are.
type operands uint8

const (
	none      operands = iota // it takes none
	text                      // texts, that name no file
	reads                     // files that are read
	pattern                   // a pattern first, unless an option gives it; then files that are read
	writes                    // files that are created, changed or removed
	copies                    // files that are read, then one that is written
	moves                     // files that are written throughout: moved away, and created
	filters                   // one file that is read, then one that is written
	modes                     // a mode, then files that are changed
	versions                  // nothing but --version is understood
	specially                 // see program.check
)

// A program is what is known of one program: the options that are harmless, and
// what its operands are. Anything that is not here is not understood.
//
// Options are written as in a manual: "-abc" are three letters without an
// argument, "-n:" takes one, "-i?" takes one only when it is attached; "--all"
// takes none, "--sort=" one, "--color?" one behind "=" only. Behind that, "<" and
// ">" say that the argument names a file that is read or written. "--" at the end
// means that every option of the program is harmless, so that a glob may expand to
// one.
type program struct {
	kind  operands
	flags string
	deep  string // options by which it goes below directories; "*" always
	given string // options that give the pattern
	check func(r *reader, args []word) []word
}

// option is one entry of program.flags.
type option struct {
	takes bool // an argument, in the next word when it is not attached
	may   bool // an attached argument
	file  byte // '<' or '>': the argument is a file's name
}

type options struct {
	known map[string]option // by letter, or by long name with its dashes
	open  bool              // every option is harmless
}

func parseOptions(spec string) options {
	o := options{known: map[string]option{}}
	for _, f := range strings.Fields(spec) {
		if f == "--" {
			o.open = true
			continue
		}
		var opt option
		if last := f[len(f)-1]; last == '<' || last == '>' {
			opt.file, opt.takes, opt.may, f = last, true, true, f[:len(f)-1]
		}
		switch last := f[len(f)-1]; last {
		case ':', '=':
			opt.takes, opt.may, f = true, true, f[:len(f)-1]
		case '?':
			opt.may, f = true, f[:len(f)-1]
		}
		if strings.HasPrefix(f, "--") {
			o.known[f] = opt
			continue
		}
		for _, c := range f[1:] {
			o.known["-"+string(c)] = opt
		}
	}
	return o
}

// parsed are a program's arguments as getopt reads them.
type parsed struct {
	operands []word
	used     []string // options, by letter or long name
	targets  []word   // files that options write
}

// getopt reads options as getopt_long does: anywhere before "--", letters in one
// word, arguments attached or in the next word. Long options are read only when
// they are written in full.
func (r *reader) getopt(name string, o options, args []word) (p parsed) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a.text == "--" && !a.glob {
			p.operands = append(p.operands, args[i+1:]...)
			return p
		}
		if a.dynamic {
			r.fail("an argument of " + name + " is only known when it runs")
			return p
		}
		if a.lead && !o.open {
			r.fail("a file's name may become an option of " + name + "; write ./ before it")
			return p
		}
		if len(a.text) < 2 || a.text[0] != '-' {
			p.operands = append(p.operands, a)
			continue
		}
		if a.glob {
			r.fail("an option of " + name + " is only known when it runs")
			return p
		}
		used, more, ok := r.option(o, a.text, args[i+1:], &p)
		if !ok {
			r.fail("the option " + a.text + " of " + name + " is not known to be harmless")
			return p
		}
		p.used = append(p.used, used...)
		i += more
	}
	return p
}

// option reads one word of options. It returns their names, and how many of the
// following words are their arguments.
func (r *reader) option(o options, a string, rest []word, p *parsed) (used []string, more int, ok bool) {
	if strings.HasPrefix(a, "--") {
		name, arg, attached := strings.Cut(a, "=")
		opt, known := o.known[name]
		switch {
		case !known, attached && !opt.may:
			return nil, 0, false
		case attached:
			return []string{name}, 0, r.argument(opt, word{text: arg}, p)
		case opt.takes:
			return []string{name}, 1, len(rest) > 0 && r.argument(opt, rest[0], p)
		}
		return []string{name}, 0, true
	}
	for i, c := range a[1:] {
		name := "-" + string(c)
		opt, known := o.known[name]
		if !known {
			return nil, 0, false
		}
		used = append(used, name)
		if !opt.may {
			continue
		}
		if attached := a[1+i+len(string(c)):]; attached != "" {
			return used, 0, r.argument(opt, word{text: attached}, p)
		}
		if opt.takes {
			return used, 1, len(rest) > 0 && r.argument(opt, rest[0], p)
		}
	}
	return used, 0, true
}

// argument notes an option's argument. One whose value or number of words is
// only known when it runs is not read.
func (r *reader) argument(o option, w word, p *parsed) bool {
	if w.glob || w.dynamic && o.file != 0 {
		return false
	}
	if o.file != 0 && w.text != "-" {
		r.path(w, o.file == '>', false)
		if o.file == '>' {
			p.targets = append(p.targets, w)
		}
	}
	return true
}

// program reads the arguments of a program.
func (r *reader) program(name string, args []word) {
	p, ok := programs[name]
	if !ok {
		r.fail(name + " is not on the list of harmless programs")
		return
	}
	r.listing = slices.Contains(listings, name)
	if p.kind == versions {
		if len(args) != 1 || args[0].text != "--version" {
			r.fail(name + " is not on the list of harmless programs")
		}
		return
	}
	if p.check != nil {
		if args = p.check(r, args); r.failed() || p.kind == specially {
			return
		}
	}
	got := r.getopt(name, flagsOf()[name], args)
	if r.failed() {
		return
	}
	deep := p.deep == "*" || p.deep != "" && slices.ContainsFunc(got.used, func(o string) bool { return slices.Contains(strings.Fields(p.deep), o) })
	r.copying = strings.HasSuffix(name, "grep") && slices.Contains(got.used, "-R") // it follows links
	r.operands(name, p, got, deep)
	r.copying = false
}

// operands notes the files that a program's operands name.
func (r *reader) operands(name string, p program, got parsed, deep bool) {
	list := got.operands
	switch p.kind {
	case none:
		if len(list) > 0 {
			r.fail(name + " takes no argument that is known to be harmless")
		}
	case text:
	case pattern:
		given := slices.ContainsFunc(got.used, func(o string) bool { return slices.Contains(strings.Fields(p.given), o) })
		if !given && len(list) > 0 {
			if list[0].glob {
				r.fail("the pattern of " + name + " is only known when it runs")
				return
			}
			list = list[1:]
		}
		if deep && len(list) == 0 {
			list = []word{{text: "."}}
		}
		r.each(list, false, deep)
	case reads:
		if deep && len(list) == 0 {
			list = []word{{text: "."}}
		}
		r.each(list, false, deep)
	case writes:
		r.each(list, true, deep)
	case copies, moves:
		r.copied(list, got, p.kind == moves, deep)
	case filters:
		if len(list) > 2 || len(list) == 2 && list[0].glob || len(list) == 1 && list[0].glob {
			r.fail(name + " may write to a file")
			return
		}
		r.each(list[:min(1, len(list))], false, false)
		r.each(list[min(1, len(list)):], true, false)
	case modes:
		if len(list) < 2 || !harmlessMode().MatchString(list[0].text) {
			r.fail("the mode of " + name + " is not known to be harmless")
			return
		}
		r.each(list[1:], true, deep)
	}
}

func (r *reader) each(list []word, write, deep bool) {
	for _, w := range list {
		if w.text == "-" && !write || w.process && !write {
			continue
		}
		r.path(w, write, deep)
	}
}

// copied notes the files of cp and mv. What they create may be a symbolic
// link, so nothing in the same command may use it afterwards.
func (r *reader) copied(list []word, got parsed, move, deep bool) {
	targets := slices.Clone(got.targets)
	if len(targets) == 0 {
		if len(list) < 2 {
			r.fail("it copies a file to nowhere")
			return
		}
		targets, list = list[len(list)-1:], list[:len(list)-1]
	}
	if targets[0].glob {
		r.fail("the target of a copy is only known when it runs")
		return
	}
	r.copying = deep && !move
	defer func() { r.copying = false }()
	for _, w := range list {
		base := path.Base(w.text)
		if deep && (base == "." || base == ".." || base == "/" || w.process) {
			r.fail("it copies all that is in a directory")
			return
		}
		r.path(w, move, deep)
		under := targets[0]
		under.text, under.glob = strings.TrimSuffix(under.text, "/")+"/"+base, w.glob
		r.path(under, true, false)
	}
	for _, t := range targets {
		r.path(t, true, false)
		if move || deep {
			r.links = append(r.links, r.from(t)...)
		}
	}
}
