package vetted

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// anything returns a program whose arguments are text, whatever they are.
func anything(*reader, []word) []word { return nil }

// numbersAndText are formats of printf that only print.
var numbersAndText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([^%]|%%|%[-+ #0]?[0-9]{0,3}(\.[0-9]{1,3})?[sdiuxXocbqeEfgG])*$`)
})

// printf can assign to a variable by -v and by %n, which evaluates subscripts.
func printf(r *reader, args []word) []word {
	if len(args) > 0 && args[0].text == "--" && !args[0].glob {
		args = args[1:]
	}
	if len(args) == 0 {
		return nil
	}
	if f := args[0]; f.glob || f.dynamic || strings.HasPrefix(f.text, "-") || !numbersAndText().MatchString(f.text) {
		r.fail("the format of printf is not known to be harmless")
	}
	return nil
}

// test evaluates the subscripts in its argument with -v and -R.
func test(r *reader, args []word) []word {
	for i, a := range args {
		switch {
		case a.glob || a.dynamic && (i != 1 || len(args) > 3 || args[0].text != "-n" && args[0].text != "-z"):
			r.fail("a test is only known when it runs")
		case a.text == "-v" || a.text == "-R":
			r.fail("a test evaluates the name of a variable")
		case i > 0 && len(args[i-1].text) == 2 && strings.Contains("-e-f-d-r-w-x-s-L-h", args[i-1].text):
			r.path(a, false, false)
		}
	}
	return nil
}

var exitCode = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{1,3}$`) })

func exit(r *reader, args []word) []word {
	if len(args) > 1 || len(args) == 1 && (args[0].glob || !exitCode().MatchString(args[0].text)) {
		r.fail("the exit code is only known when it runs")
	}
	return nil
}

func cd(r *reader, args []word) []word {
	if len(args) > 0 && args[0].text == "--" && !args[0].glob {
		args = args[1:]
	}
	switch {
	case len(args) == 0:
		r.chdir(word{text: "~", home: true})
	case len(args) > 1 || args[0].glob || args[0].dynamic || args[0].text == "" || args[0].text[0] == '-':
		r.fail("a change of directory cannot be resolved")
	default:
		r.path(args[0], false, false)
		r.chdir(args[0])
	}
	return nil
}

// lookUp returns command, which runs its arguments except with -v and -V.
func lookUp(r *reader, args []word) []word {
	if len(args) < 2 || args[0].text != "-v" && args[0].text != "-V" || slices.ContainsFunc(args, func(w word) bool { return w.glob || w.dynamic }) {
		r.fail("command runs another program")
	}
	return nil
}

// date sets the clock by an operand without "+".
func date(r *reader, args []word) []word {
	for i, a := range args {
		after := i > 0 && slices.Contains([]string{"-d", "-r", "--date", "--reference", "--rfc-3339"}, args[i-1].text)
		if a.glob || !after && !strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "+") {
			r.fail("date may set the clock")
			return nil
		}
	}
	return args
}

// ps shows the environment of other processes by some of its options.
func ps(r *reader, args []word) []word {
	for _, a := range args {
		if a.glob || !slices.Contains([]string{"aux", "ax", "-e", "-f", "-ef", "-A", "-a", "-x", "u", "-ax"}, a.text) {
			r.fail("ps may show the environment of processes")
		}
	}
	return nil
}

// noResponseFile refuses @file, from which binutils read further options.
func noResponseFile(r *reader, args []word) []word {
	if slices.ContainsFunc(args, func(a word) bool { return strings.HasPrefix(a.text, "@") }) {
		r.fail("it reads options from a file")
	}
	return args
}

// Expressions of find that print, with how many arguments they take.
var findWords = map[string]int{
	"-name": 1, "-iname": 1, "-path": 1, "-ipath": 1, "-wholename": 1, "-iwholename": 1, "-regex": 1, "-iregex": 1, "-regextype": 1, "-lname": 1,
	"-type": 1, "-xtype": 1, "-size": 1, "-mtime": 1, "-mmin": 1, "-atime": 1, "-amin": 1, "-ctime": 1, "-cmin": 1, "-newer": 1, "-anewer": 1, "-newermt": 1,
	"-maxdepth": 1, "-mindepth": 1, "-user": 1, "-group": 1, "-uid": 1, "-gid": 1, "-perm": 1, "-links": 1, "-inum": 1, "-samefile": 1, "-printf": 1,
	"-empty": 0, "-print": 0, "-print0": 0, "-ls": 0, "-prune": 0, "-quit": 0, "-true": 0, "-false": 0, "-depth": 0, "-xdev": 0, "-mount": 0,
	"-readable": 0, "-writable": 0, "-executable": 0, "-nouser": 0, "-nogroup": 0, "-daystart": 0, "-not": 0, "-o": 0, "-or": 0, "-a": 0, "-and": 0, "!": 0, "(": 0, ")": 0, ",": 0,
}

func find(r *reader, args []word) []word {
	if len(args) > 0 && (args[0].text == "-H" || args[0].text == "-P") {
		args = args[1:]
	}
	i := 0
	for i < len(args) && !args[i].lead && args[i].text != "" && !strings.ContainsAny(args[i].text[:1], "-!(),") {
		r.path(args[i], false, true)
		i++
	}
	if i == 0 {
		r.path(word{text: "."}, false, true)
	}
	for i < len(args) {
		takes, ok := findWords[args[i].text]
		if !ok || args[i].glob || i+takes >= len(args) {
			r.fail("the expression of find is not known to be harmless")
			return nil
		}
		if takes == 1 {
			arg := args[i+1]
			if arg.glob || arg.dynamic {
				r.fail("an argument of find is only known when it runs; quote it")
				return nil
			}
			if slices.Contains([]string{"-newer", "-anewer", "-samefile"}, args[i].text) {
				r.path(arg, false, false)
			}
		}
		i += 1 + takes
	}
	return nil
}

// sedScript is a script of sed that neither runs commands nor writes files. It
// is one line, without blocks, labels and text to insert.
var sedScript = sync.OnceValue(func() *regexp.Regexp {
	const (
		// A delimiter in brackets is none, so these hold none, and no backslash.
		set     = `|\[\^?[A-Za-z0-9 _.:;*+=-]+\]|\[\^?(\[:[a-z]+:\])+\]`
		regex   = `([^/\\\[]|\\.` + set + `)*`
		address = `([0-9]+(~[0-9]+)?|\$|/` + regex + `/I?)`
		between = address + `(,(\+?[0-9]+|~[0-9]+|\$|/` + regex + `/I?))?`
		flags   = `[gpiI0-9]*`
		change  = `s/` + regex + `/([^/\\]|\\.)*/` + flags + `|s\|([^|\\\[]|\\.` + set + `)*\|([^|\\]|\\.)*\|` + flags +
			`|s#([^#\\\[]|\\.` + set + `)*#([^#\\]|\\.)*#` + flags + `|s,([^,\\\[]|\\.` + set + `)*,([^,\\]|\\.)*,` + flags
		command = ` *(` + between + ` *)?!? *(` + change + `|[pdDgGhHxnNPqQ=]|y/[^/\\]*/[^/\\]*/) *`
	)
	return regexp.MustCompile(`^` + command + `(;` + command + `)*;?$`)
})

func sed(r *reader, args []word) []word {
	var scripts []string
	inPlace, i := false, 0
	for i < len(args) && len(args[i].text) > 1 && args[i].text[0] == '-' && !args[i].glob {
		switch args[i].text {
		case "-n", "-E", "-r", "-s", "-z", "-u", "-nE", "-En", "-nr", "-rn":
		case "-i":
			inPlace = true
		case "-e", "-ne", "-nEe", "-Ee":
			if i++; i == len(args) || args[i].glob || args[i].dynamic {
				r.fail("the script of sed is only known when it runs")
				return nil
			}
			scripts = append(scripts, args[i].text)
		default:
			r.fail("the option " + args[i].text + " of sed is not known to be harmless")
			return nil
		}
		i++
	}
	if len(scripts) == 0 {
		if i == len(args) || args[i].glob || args[i].dynamic {
			r.fail("the script of sed is only known when it runs")
			return nil
		}
		scripts = append(scripts, args[i].text)
		i++
	}
	for _, s := range scripts {
		if !sedScript().MatchString(s) || strings.ContainsAny(s, "\n\t") {
			r.fail("the script of sed is not known to be harmless")
			return nil
		}
	}
	r.files("sed", args[i:], inPlace)
	return nil
}

// files notes the operands of a program whose options have been read. Options
// may follow operands, so none may begin with "-".
func (r *reader) files(name string, args []word, write bool) {
	for _, a := range args {
		switch {
		case a.lead:
			r.fail("a file's name may become an option of " + name + "; write ./ before it")
		case a.text == "-" && !write:
		case strings.HasPrefix(a.text, "-") || a.dynamic:
			r.fail("an option of " + name + " is not known to be harmless")
		default:
			r.path(a, write, false)
		}
	}
}

// awkReach are names and characters by which a program of awk runs commands,
// writes files, or reads what its arguments do not name.
var awkReach = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\\\\\n|[|@`]|system|getline|ENVIRON|PROCINFO|ARG|SYMTAB|FUNCTAB|close|fflush|include|load|namespace|func")
})

var (
	awkVariable  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([a-z][a-z0-9_]*|O?FS|O?RS)=[^\\]*$`) })
	awkSeparator = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([^\\]{1,3}|\\t|\\\|)$`) })
)

func awk(r *reader, args []word) []word {
	i := 0
	for i < len(args) && len(args[i].text) > 1 && args[i].text[0] == '-' && !args[i].glob {
		flag, value := args[i].text[:2], word{text: args[i].text[2:]}
		if value.text == "" {
			if i++; i == len(args) {
				r.fail("an option of awk has no argument")
				return nil
			}
			value = args[i]
		}
		switch {
		case value.glob, value.dynamic, value.home:
			r.fail("an argument of awk is only known when it runs")
			return nil
		case flag == "-F" && awkSeparator().MatchString(value.text), flag == "-v" && awkVariable().MatchString(value.text):
		default:
			r.fail("an option of awk is not known to be harmless")
			return nil
		}
		i++
	}
	if i == len(args) || args[i].glob || args[i].dynamic || !harmlessAwk(args[i].text) {
		r.fail("the program of awk is not known to be harmless")
		return nil
	}
	for _, a := range args[i+1:] {
		if strings.HasPrefix(path.Clean(a.text), "/inet") {
			r.fail("a file of awk is a network connection")
			return nil
		}
	}
	r.files("awk", args[i+1:], false)
	return nil
}

// harmlessAwk reports whether a program of awk only computes and prints. ">"
// compares in a pattern, before the first brace, and redirects after it.
func harmlessAwk(text string) bool {
	if awkReach().MatchString(text) || strings.HasPrefix(text, "-") {
		return false
	}
	rest := strings.ReplaceAll(text, ">=", "")
	if _, action, ok := strings.Cut(rest, "{"); ok {
		return !strings.Contains(action, ">")
	}
	return true
}

// jqReach are names by which a filter of jq reads the environment or files.
var jqReach = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`env|ENV|import|include|modulemeta|input_filename|get_search_list|\$__`)
})

var jqFlags = sync.OnceValue(func() options {
	return parseOptions("-rcnsSMCaejR --raw-output --compact-output --null-input --slurp --sort-keys --monochrome-output --color-output --ascii-output --exit-status --join-output --raw-input --tab --indent=")
})

func jq(r *reader, args []word) []word {
	got := r.getopt("jq", jqFlags(), args)
	switch {
	case r.failed():
	case len(got.operands) == 0 || got.operands[0].glob || jqReach().MatchString(got.operands[0].text):
		r.fail("the filter of jq is not known to be harmless")
	default:
		r.each(got.operands[1:], false, false)
	}
	return nil
}

// tree reads letters behind one that takes an argument as further options.
func tree(r *reader, args []word) []word {
	for _, a := range args {
		if !strings.HasPrefix(a.text, "-") || strings.HasPrefix(a.text, "--") {
			continue
		}
		if i := strings.IndexAny(a.text, "LPI"); i >= 0 && i != len(a.text)-1 {
			r.fail("an option of tree is not written on its own")
		}
	}
	return args
}
