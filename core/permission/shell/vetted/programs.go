package vetted

import (
	"maps"
	"regexp"
	"slices"
	"sync"
)

// Options that the programs of GNU coreutils share.
const (
	digits = " -0123456789"
	sums   = "-btz --binary --text --tag --zero"
)

// programs are the programs that are understood. A program belongs here when no
// option in its entry runs another program, changes the system, or reads or
// writes a file that the entry does not name.
var programs = map[string]program{
	// Text and conditions.
	"echo":     {kind: specially, check: anything},
	"printf":   {kind: specially, check: printf},
	"true":     {kind: specially, check: anything},
	"false":    {kind: specially, check: anything},
	":":        {kind: specially, check: anything},
	"test":     {kind: specially, check: test},
	"[":        {kind: specially, check: test},
	"exit":     {kind: specially, check: exit},
	"cd":       {kind: specially, check: cd},
	"pwd":      {kind: none, flags: "-LP"},
	"type":     {kind: text, flags: "-aftpP"},
	"command":  {kind: specially, check: lookUp},
	"which":    {kind: text, flags: "-as"},
	"whereis":  {kind: text, flags: "-bms"},
	"sleep":    {kind: text},
	"seq":      {kind: text, flags: "-f:s:w --equal-width" + digits},
	"expr":     {kind: text},
	"factor":   {kind: text},
	"numfmt":   {kind: text, flags: "-d: -z --from= --to= --suffix= --padding= --field= --round= --grouping"},
	"basename": {kind: text, flags: "-az -s: --multiple --suffix= --zero"},
	"dirname":  {kind: text, flags: "-z --zero"},
	"pathchk":  {kind: text, flags: "-pP"},
	"tr":       {kind: text, flags: "-cCdst --complement --delete --squeeze-repeats --truncate-set1"},
	"bc":       {kind: none, flags: "-lqsw"},
	"cal":      {kind: text, flags: "-13hjmsyw"},
	"ncal":     {kind: text, flags: "-13hjywM"},

	// The system.
	"date":       {kind: text, flags: "-u -I? -R -d: -r< --utc --iso-8601? --rfc-3339= --date= --reference=<", check: date},
	"uptime":     {kind: none, flags: "-ps --pretty --since"},
	"uname":      {kind: none, flags: "-asnrvmpio --all --kernel-name --kernel-release --machine"},
	"arch":       {kind: none},
	"nproc":      {kind: none, flags: "--all --ignore="},
	"hostname":   {kind: none, flags: "-sI"},
	"hostid":     {kind: none},
	"whoami":     {kind: none},
	"logname":    {kind: none},
	"tty":        {kind: none, flags: "-s"},
	"id":         {kind: text, flags: "-agGnruz --user --group --groups --name --real"},
	"groups":     {kind: text},
	"users":      {kind: none},
	"who":        {kind: none, flags: "-abdHlmpqrstTuw"},
	"w":          {kind: none, flags: "-hsfi"},
	"locale":     {kind: text, flags: "-amck"},
	"getconf":    {kind: text, flags: "-a"},
	"free":       {kind: none, flags: "-bkmghtwl"},
	"vmstat":     {kind: none, flags: "-asm"},
	"lscpu":      {kind: none, flags: "-aebcpJ? --json"},
	"lsblk":      {kind: none, flags: "-abdflmnprtJ -o: --output= --json"},
	"lsmod":      {kind: none},
	"lspci":      {kind: none, flags: "-vnktmbD"},
	"lsusb":      {kind: none, flags: "-tv"},
	"findmnt":    {kind: none, flags: "-AlmnrJ -o: --json"},
	"mountpoint": {kind: reads, flags: "-dqx"},
	"ps":         {kind: specially, check: ps},
	"pgrep":      {kind: text, flags: "-cflnovxi -u: -U: -P: -g: --full --list-name --newest --oldest --exact --count"},
	"pidof":      {kind: text, flags: "-s"},
	"df":         {kind: reads, flags: "-ahHiklmPTv -t: -x: --all --human-readable --inodes --local --portability --print-type --total --type= --exclude-type= --output?"},
	"sensors":    {kind: none},
	"times":      {kind: none},

	// Reading files.
	"ls":        {kind: reads, flags: "-aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1 --all --almost-all --author --block-size= --classify? --color? --directory --format= --full-time --group-directories-first --hide= --human-readable --ignore= --indicator-style= --inode --literal --no-group --numeric-uid-gid --quote-name --recursive --reverse --show-control-chars --si --size --sort= --time= --time-style= --tabsize= --width= --hyperlink? --zero --context -- -I: -w: -T:", deep: "-R --recursive"},
	"dir":       {kind: reads, flags: "-aAbBcCdfFgGhHiklmnNopqQrRsStuUvxX1 --all --color? --", deep: "-R"},
	"vdir":      {kind: reads, flags: "-aAbBcCdfFgGhHiklmnNopqQrRsStuUvxX1 --all --color? --", deep: "-R"},
	"tree":      {kind: reads, flags: "-adfipsughDFqNQrtcUvCnAS -L: -P: -I: --dirsfirst --du --noreport --sort= --filelimit= --prune --gitignore --matchdirs --ignore-case", deep: "*", check: tree},
	"cat":       {kind: reads, flags: "-AbeEnstTuv --number --number-nonblank --show-all --show-ends --show-nonprinting --show-tabs --squeeze-blank --"},
	"tac":       {kind: reads, flags: "-br -s: --before --regex --separator= --"},
	"nl":        {kind: reads, flags: "-p -b: -d: -f: -h: -i: -l: -n: -s: -v: -w: --body-numbering= --number-width= --"},
	"head":      {kind: reads, flags: "-qvz -c: -n: --bytes= --lines= --quiet --silent --verbose --zero-terminated --" + digits},
	"tail":      {kind: reads, flags: "-fFqvz -c: -n: -s: --bytes= --lines= --quiet --silent --verbose --follow? --retry --pid= --sleep-interval= --zero-terminated --" + digits},
	"wc":        {kind: reads, flags: "-clLmw --bytes --chars --lines --max-line-length --words --total= --"},
	"cut":       {kind: reads, flags: "-nsz -b: -c: -d: -f: --bytes= --characters= --delimiter= --fields= --complement --only-delimited --output-delimiter= --zero-terminated --"},
	"paste":     {kind: reads, flags: "-sz -d: --delimiters= --serial --zero-terminated --"},
	"join":      {kind: reads, flags: "-i -a: -e: -j: -o: -t: -v: -1: -2: --ignore-case --header --check-order --nocheck-order"},
	"comm":      {kind: reads, flags: "-123z --check-order --nocheck-order --output-delimiter= --total"},
	"fold":      {kind: reads, flags: "-bs -w: --bytes --spaces --width= --"},
	"fmt":       {kind: reads, flags: "-cstu -w: -p: -g: --width= --"},
	"expand":    {kind: reads, flags: "-i -t: --tabs= --initial --"},
	"unexpand":  {kind: reads, flags: "-a -t: --tabs= --all --"},
	"column":    {kind: reads, flags: "-txeL -s: -o: -c: -N: -R: --table --separator= --output-separator="},
	"pr":        {kind: reads, flags: "-adfFJmrtTv -h: -l: -o: -w: -W: -n? -s?"},
	"rev":       {kind: reads},
	"tsort":     {kind: reads},
	"sort":      {kind: reads, flags: "-bcCdfghiMmnRrsuVz -k: -t: -S: -o> --ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort --human-numeric-sort --month-sort --numeric-sort --random-sort --reverse --version-sort --check? --key= --merge --output=> --stable --field-separator= --unique --zero-terminated --parallel="},
	"shuf":      {kind: reads, flags: "-erz -i: -n: --echo --input-range= --head-count= --repeat"},
	"uniq":      {kind: filters, flags: "-cdDiuz -f: -s: -w: --count --repeated --all-repeated? --ignore-case --unique --skip-fields= --skip-chars= --check-chars= --group?"},
	"xxd":       {kind: filters, flags: "-bCEeipu"},
	"md5sum":    {kind: reads, flags: sums},
	"sha1sum":   {kind: reads, flags: sums},
	"sha224sum": {kind: reads, flags: sums},
	"sha256sum": {kind: reads, flags: sums},
	"sha384sum": {kind: reads, flags: sums},
	"sha512sum": {kind: reads, flags: sums},
	"b2sum":     {kind: reads, flags: sums + " -l: --length="},
	"cksum":     {kind: reads, flags: "-a: --algorithm= --untagged --base64"},
	"sum":       {kind: reads, flags: "-rs --sysv --"},
	"base64":    {kind: reads, flags: "-di -w: --decode --ignore-garbage --wrap= --"},
	"base32":    {kind: reads, flags: "-di -w: --decode --ignore-garbage --wrap= --"},
	"od":        {kind: reads, flags: "-abcdfhilosxv -A: -j: -N: -S: -t: -w? --address-radix= --skip-bytes= --read-bytes= --format= --width? --"},
	"hexdump":   {kind: reads, flags: "-bcCdovxX -e: -n: -s: --canonical --length= --skip="},
	"hd":        {kind: reads, flags: "-v -n: -s:"},
	"strings":   {kind: reads, flags: "-afow -n: -t: -e: --all --bytes= --radix=", check: noResponseFile},
	"file":      {kind: reads, flags: "-0bEhikLNnpr -F: -P: --brief --mime --mime-type --mime-encoding --no-dereference --dereference --separator= --print0 --extension"},
	"stat":      {kind: reads, flags: "-fLt -c: --format= --printf= --dereference --file-system --terse --cached= --"},
	"readlink":  {kind: reads, flags: "-efmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --"},
	"realpath":  {kind: reads, flags: "-eLmPqsz --relative-to=< --relative-base=< --no-symlinks --strip --canonicalize-existing --canonicalize-missing --logical --physical --quiet --zero"},
	"namei":     {kind: reads, flags: "-lmnovx"},
	"du":        {kind: reads, flags: "-0abchHklmsSx -B: -d: -t: --all --apparent-size --block-size= --bytes --total --dereference-args --max-depth= --human-readable --inodes --count-links --separate-dirs --si --summarize --threshold= --time? --time-style= --exclude= --one-file-system --", deep: "*"},
	"cmp":       {kind: reads, flags: "-bls -i: -n: --print-bytes --ignore-initial= --verbose --bytes= --quiet --silent"},
	"diff":      {kind: reads, flags: "-abBcdeEinNpqrstTuwyZ -C: -I: -U: -W: -x: --brief --color? --context? --unified? --ignore-all-space --ignore-blank-lines --ignore-case --ignore-space-change --ignore-trailing-space --minimal --new-file --recursive --report-identical-files --side-by-side --suppress-common-lines --text --width= --exclude= --strip-trailing-cr --no-dereference --label=", deep: "-r --recursive"},
	"look":      {kind: pattern, flags: "-df"},
	"getfacl":   {kind: reads, flags: "-acdenptR", deep: "-R"},
	"lsattr":    {kind: reads, flags: "-adlpRv", deep: "-R"},
	"grep":      {kind: pattern, flags: grepFlags, deep: grepDeep, given: "-e -f --regexp --file"},
	"egrep":     {kind: pattern, flags: grepFlags, deep: grepDeep, given: "-e -f --regexp --file"},
	"fgrep":     {kind: pattern, flags: grepFlags, deep: grepDeep, given: "-e -f --regexp --file"},
	"rg":        {kind: pattern, flags: "-cFHhiIlnNoPqsSUvwx0 -A: -B: -C: -e: -f< -g: -j: -m: -M: -r: -t: -T: -p --case-sensitive --color= --column --context= --count --count-matches --files --files-with-matches --files-without-match --fixed-strings --glob= --heading --iglob= --ignore-case --invert-match --json --line-number --max-columns= --max-count= --max-depth= --multiline --no-filename --no-heading --no-line-number --no-messages --null --only-matching --quiet --regexp= --replace= --smart-case --sort= --stats --trim --type= --type-not= --with-filename --word-regexp --line-regexp --after-context= --before-context=", deep: "*", given: "-e -f --regexp --files"},
	"find":      {kind: specially, check: find},
	"sed":       {kind: specially, check: sed},
	"awk":       {kind: specially, check: awk},
	"gawk":      {kind: specially, check: awk},
	"mawk":      {kind: specially, check: awk},
	"jq":        {kind: specially, check: jq},
	"git":       {kind: specially, check: git},
	"iconv":     {kind: reads, flags: "-cls -f: -t: --from-code= --to-code= --list"},
	"shasum":    {kind: reads, flags: "-bt -a: --algorithm="},
	"md5":       {kind: reads, flags: "-qr"},
	"gofmt":     {kind: reads, flags: "-lse"},
	"uuidgen":   {kind: none, flags: "-rt --random --time"},

	// Changing files in the working area.
	"touch":  {kind: writes, flags: "-acmh -d: -t: -r< --no-create --date= --reference=< --time="},
	"mkdir":  {kind: writes, flags: "-pv --parents --verbose"},
	"rmdir":  {kind: writes, flags: "-pv --parents --verbose --ignore-fail-on-non-empty"},
	"rm":     {kind: writes, flags: "-dfirRvI --force --recursive --verbose --dir", deep: "-r -R --recursive"},
	"unlink": {kind: writes},
	"cp":     {kind: copies, flags: "-abfinprRuvx --archive --backup? --force --interactive --no-clobber --preserve? --recursive --update --verbose -t> --target-directory=>", deep: "-a -r -R --archive --recursive"},
	"mv":     {kind: moves, flags: "-bfinuv -t> --backup? --force --interactive --no-clobber --update --verbose --target-directory=>", deep: "*"},
	"tee":    {kind: writes, flags: "-aip --append"},
	"chmod":  {kind: modes, flags: "-cfvR --changes --quiet --verbose --recursive", deep: "-R --recursive"},
	"sync":   {kind: none},

	// Of these only the version is asked for.
	"python3": {kind: versions}, "python": {kind: versions}, "node": {kind: versions}, "ruby": {kind: versions}, "perl": {kind: versions},
	"php": {kind: versions}, "bash": {kind: versions}, "gcc": {kind: versions}, "make": {kind: versions}, "cmake": {kind: versions}, "curl": {kind: versions},
}

const (
	grepFlags = "-abcEFGHhIiLlnoPqRrsTUvwxyzZ -A: -B: -C: -d: -D: -e: -f< -m: --after-context= --before-context= --context= --color? --colour? --count --exclude= --exclude-dir= --extended-regexp --file=< --files-with-matches --files-without-match --fixed-strings --ignore-case --include= --initial-tab --invert-match --line-number --line-regexp --max-count= --no-filename --no-ignore-case --no-messages --null --only-matching --perl-regexp --quiet --recursive --regexp= --silent --text --with-filename --word-regexp --byte-offset --basic-regexp --directories= --binary-files= --" + digits
	grepDeep  = "-r -R --recursive -d --directories"
)

// listings are programs that go below directories without opening files.
var listings = []string{"ls", "dir", "vdir", "tree", "du", "find", "getfacl", "lsattr"}

// harmlessMode are modes of files that neither run as another user nor let
// everyone write.
var harmlessMode = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(0?[0-7][0-7][0145]|[ugo]*[+=-][rxX]*|u[+=-][rwxX]*|-[rwx]+|[uga]*\+[rxX]+|\+[rwxX]+|[go]+-[rwxX]+|a-[rwxX]+)$`)
})

// Programs returns the names of the programs that are understood, sorted.
func Programs() []string { return slices.Sorted(maps.Keys(programs)) }

// flagsOf are the options of programs, parsed once.
var flagsOf = sync.OnceValue(func() map[string]options {
	out := map[string]options{}
	for name, p := range programs {
		out[name] = parseOptions(p.flags)
	}
	return out
})
