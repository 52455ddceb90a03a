package crawl

import (
	"path"
	"strings"
)

// A kind is how a file's text is read.
type kind uint8

const (
	unknown kind = iota // not indexed
	plain
	pdf
)

func kindOf(name string) kind {
	return kinds[strings.ToLower(path.Ext(name))]
}

// kinds are the extensions that are indexed: documents, data and source code.
var kinds = func() map[string]kind {
	out := map[string]kind{".pdf": pdf}
	for ext := range strings.FieldsSeq(`.md .markdown .txt .text .org .rst .adoc .tex .csv .tsv .json .yaml .yml .toml .ini .xml .html .htm .srt .vtt .ics .vcf
		.go .py .js .mjs .ts .jsx .tsx .rs .c .h .cc .cpp .hpp .java .kt .swift .rb .php .pl .lua .sh .bash .zsh .sql .css .scss .r .jl .hs .ex .exs .erl .clj .scala .cs .fs .dart .vue .svelte .proto .graphql .tf .nix`) {
		out[ext] = plain
	}
	return out
}()
