package vetted

import (
	"path"
	"slices"
	"strings"
	"sync"
)

const (
	gitDiff = " -pusRabwzW -U? -M? -C? -S: -G: --patch --no-patch --stat? --shortstat --numstat --name-only --name-status --raw --summary --cached --staged --color? --no-color --word-diff? --unified? --minimal --patience --histogram --find-renames? --no-renames --ignore-all-space --ignore-space-change --ignore-space-at-eol --ignore-blank-lines --check --full-index --abbrev? --diff-filter= --exit-code --quiet --relative? --text --no-prefix --function-context --compact-summary --dirstat? --no-ext-diff --no-textconv"
	gitLog  = gitDiff + " -n: -i -E -F -P -L: -0123456789 -g --oneline --graph --all --branches? --tags? --remotes? --decorate? --no-decorate --format= --pretty? --abbrev-commit --no-abbrev-commit --since= --after= --until= --before= --author= --committer= --grep= --max-count= --skip= --merges --no-merges --first-parent --reverse --follow --topo-order --date-order --date= --left-right --cherry-pick --boundary --full-history --simplify-by-decoration --show-pulls --relative-date --source --walk-reflogs --max-parents= --min-parents= --not"
)

// gitCommands are subcommands that read, and two that record what is there. They
// may run what the configuration of the repository names (filters, textconv,
// external diff, hooks). That is accepted for the repository of the working
// directory itself: .git/config and .git/hooks are write-denied below full
// trust and this package refuses to write there, so only the owner can have set
// them. Shells at full trust have core.fsmonitor and core.hooksPath switched off
// as well.
var gitCommands = map[string]program{
	"status":        {kind: reads, flags: "-sbvz -u? --short --branch --porcelain? --long --verbose --untracked-files? --ignored? --show-stash --ahead-behind --no-ahead-behind --renames --no-renames --column?"},
	"log":           {kind: reads, flags: gitLog},
	"diff":          {kind: reads, flags: gitDiff + " --merge-base"},
	"show":          {kind: reads, flags: gitLog},
	"blame":         {kind: reads, flags: "-bceflnpstw -L: -M? -C? --porcelain --line-porcelain --show-email --date= --since="},
	"shortlog":      {kind: reads, flags: "-sne --summary --numbered --email --since= --until= --all"},
	"describe":      {kind: text, flags: "--tags --always --all --dirty? --long --abbrev= --match= --exact-match --contains"},
	"rev-parse":     {kind: text, flags: "-q --verify --short? --abbrev-ref? --show-toplevel --show-prefix --show-cdup --git-dir --is-inside-work-tree --is-bare-repository --symbolic --symbolic-full-name --absolute-git-dir --quiet"},
	"rev-list":      {kind: text, flags: "-n: --all --count --max-count= --since= --until= --oneline --no-merges --merges --first-parent --reverse -0123456789"},
	"ls-files":      {kind: reads, flags: "-cdmostuz -x: --cached --deleted --modified --others --stage --exclude-standard --full-name --error-unmatch --unmerged --ignored --directory --exclude="},
	"ls-tree":       {kind: text, flags: "-drtlz --name-only --name-status --full-tree --full-name --long"},
	"cat-file":      {kind: text, flags: "-ptse"},
	"merge-base":    {kind: text, flags: "-a --all --is-ancestor --fork-point --octopus"},
	"name-rev":      {kind: text, flags: "--tags --name-only --always"},
	"show-ref":      {kind: text, flags: "-ds --heads --tags --head --hash? --dereference"},
	"count-objects": {kind: none, flags: "-vH --verbose --human-readable"},
	"branch":        {kind: none, flags: "-arv --all --remotes --list --verbose --show-current --merged --no-merged --column? --sort= --format= --no-color"},
	"tag":           {kind: none, flags: "-l --list --sort= --format= -n?"},
	"remote":        {kind: none, flags: "-v --verbose"},
	"stash":         {kind: specially},
	"reflog":        {kind: none},
	"grep":          {kind: pattern, given: "-e", flags: "-nilLcwvhHEFPqIaoW -A: -B: -C: -e: -m: --line-number --ignore-case --files-with-matches --count --word-regexp --invert-match --cached --heading --break --and --or --not --all-match --fixed-strings --extended-regexp --perl-regexp --show-function --function-context"},
	"add":           {kind: reads, flags: "-Afnuv --all --update --dry-run --verbose --intent-to-add -N"},
	"commit":        {kind: reads, flags: "-aqv -m: --message= --all --quiet --verbose --allow-empty --signoff -s"},
}

var gitFlags = sync.OnceValue(func() map[string]options {
	out := map[string]options{}
	for name, p := range gitCommands {
		out[name] = parseOptions(p.flags)
	}
	return out
})

// attached reports whether long options have their arguments behind "=": git
// reads some of them in no other way, and goes on with the next word as an option.
func (r *reader) attached(o options, args []word) bool {
	for _, a := range args {
		if a.text == "--" {
			return true
		}
		if strings.HasPrefix(a.text, "--") && a.text != "--message" && o.known[a.text].takes {
			return false
		}
	}
	return true
}

func git(r *reader, args []word) []word {
	if len(args) > 0 && args[0].text == "--no-pager" {
		args = args[1:]
	}
	if len(args) == 0 || len(args) == 1 && args[0].text == "--version" {
		return nil
	}
	name := args[0].text
	p, ok := gitCommands[name]
	if name == "stash" || name == "reflog" {
		ok = len(args) == 2 && args[1].text == map[string]string{"stash": "list", "reflog": "show"}[name] || name == "reflog" && len(args) == 1
		args = args[:1]
	}
	if !ok {
		r.fail("git " + name + " is not on the list of harmless programs")
		return nil
	}
	if len(r.dirs) != 1 || r.dirs[0] != "." {
		r.fail("git may meet another repository, which decides what it runs")
		return nil
	}
	if p.kind == specially {
		return nil
	}
	if !r.attached(gitFlags()[name], args[1:]) {
		r.fail("an option of git has its argument in the next word")
		return nil
	}
	r.gitArguments(name, p, args[1:])
	return nil
}

// gitArguments reads what follows a subcommand.
func (r *reader) gitArguments(name string, p program, args []word) {
	got := r.getopt("git "+name, gitFlags()[name], args)
	if r.failed() {
		return
	}
	if name == "commit" && !slices.Contains(got.used, "-m") && !slices.Contains(got.used, "--message") {
		r.fail("git commit opens an editor")
		return
	}
	if slices.Contains(got.used, "--list") || name == "tag" && slices.Contains(got.used, "-l") {
		p.kind = text
	}
	for _, a := range args {
		if strings.Contains(a.text, "%G") || strings.Contains(a.text, "(signature") {
			r.fail("git checks signatures by another program")
			return
		}
	}
	for _, w := range got.operands { // pathspecs have patterns of their own
		if p.kind == reads && (strings.HasPrefix(w.text, ":") || !w.glob && strings.ContainsAny(w.text, "*?[")) {
			r.fail("git reads a pattern of files on its own")
			return
		}
	}
	for _, w := range got.operands { // revision:path names a file, too
		if _, file, ok := strings.Cut(w.text, ":"); ok {
			r.path(word{text: path.Join(".", file), glob: w.glob}, false, false)
		}
	}
	r.operands("git "+name, p, got, false)
}
