package lines

import (
	"strings"
	"unicode/utf8"
)

// How a message is split into pieces.
const (
	maxPiece  = 1600 // bytes: some 400 tokens, as passages of documents have
	maxPieces = 16   // of one message; what is behind them is in none
)

// Pieces splits the searchable text of a message into pieces of at most 1,600 bytes, at the
// ends of lines, sentences or words; at most 16. What the index keeps of a piece is its
// number: other pieces for the same text need a rebuild of the index.
func Pieces(text string) (pieces []string) {
	for text != "" && len(pieces) < maxPieces {
		n := len(text)
		if n > maxPiece {
			n = pieceEnd(text)
		}
		if piece := strings.TrimSpace(text[:n]); piece != "" {
			pieces = append(pieces, piece)
		}
		text = text[n:]
	}
	return pieces
}

// pieceEnd returns where the first piece of a longer text ends: in its second half, or where
// it is full.
func pieceEnd(text string) int {
	head := text[:maxPiece]
	for _, end := range [...]string{"\n\n", "\n", ". ", "! ", "? ", "。", " "} {
		if i := strings.LastIndex(head, end); i >= maxPiece/2 {
			return i + len(end)
		}
	}
	n := maxPiece
	for n > maxPiece-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}
