package library

import (
	"context"
	"errors"

	"gatehouse/core"
	"gatehouse/core/index/document"
	"gatehouse/core/index/embedding"
	"gatehouse/core/index/meaning"
	"gatehouse/core/index/search"
	"gatehouse/core/llm/embed"
	"gatehouse/core/session/found"
	"gatehouse/core/store"
	"gatehouse/core/usage"
)

// Embed is the server that embeds documents and searches; without a URL there is none.
type Embed struct {
	embed.Options
	Prefixes string                                                      // see embedding.PrefixesOf
	Ledger   func() *usage.Ledger                                        // of the budgets
	Cost     func(model string, u core.Tokens) (microUSD int64, ok bool) // as llm.Prices
}

// openEmbedder connects the library to its embedding server, where it has one.
func (l *Library) openEmbedder(o Options) (near func(ctx context.Context, user int64, text string) *search.Near, err error) {
	l.close = func() error { return nil }
	metrics := embedding.NewMetrics(o.Registry)
	if o.Embed.URL == "" || !o.On || o.WordsOnly {
		return nil, nil
	}
	prefixes, err := embedding.PrefixesOf(o.Embed.Prefixes, o.Embed.Model)
	if err != nil {
		return nil, err
	}
	client, err := embed.New(o.Embed.Options)
	if err != nil {
		return nil, err
	}
	l.close, l.embed = client.Close, client
	l.Meaning = meaning.New(meaning.Options{Search: prefixes.Search, Passage: prefixes.Passage, Clock: o.Clock, Log: o.Log, Vectors: func(ctx context.Context, user int64, texts []string) ([][]float32, error) {
		vectors, _, err := l.Vectors(ctx, user, texts)
		return vectors, err
	}})
	l.Embedder = embedding.New(embedding.Options{
		Model: client, Name: o.Embed.Model, Dimensions: o.Embed.Dimensions, Prefixes: prefixes, Library: found.Library{Store: l.Documents, Texts: o.Sessions}, Memory: o.DB, Spend: o.Embed.spend(o.DB),
		Ready: l.compared, MayRead: l.mayEmbed, Busy: o.Busy, Clock: o.Clock, Log: o.Log, Metrics: metrics,
	})
	return l.Embedder.Near, nil
}

// Vectors returns a vector for each text of a user's, within the budgets, and the tokens
// that the server counted. Only with an Embedder.
func (l *Library) Vectors(ctx context.Context, user int64, texts []string) (vectors [][]float32, tokens int64, err error) {
	expected := int64(0)
	for _, t := range texts {
		expected += int64(len(t))/4 + 1
	}
	err = l.o.Embed.spend(l.o.DB)(ctx, user, expected, func() (int64, error) {
		var err error
		if vectors, tokens, err = l.embed.Embed(ctx, texts); err == nil && tokens == 0 {
			tokens = expected // the server counts none
		}
		return tokens, err
	})
	return vectors, tokens, err
}

// compared reports whether the index is that of the vault by the rules as they are now.
func (l *Library) compared() bool { return l.Crawler.Current() }

// mayEmbed returns which files are indexed by the rules as they are now.
func (l *Library) mayEmbed() func(name string) bool {
	l.o.Forget()
	return func(name string) bool { return l.o.MayRead(core.Vault, core.Operator, name) }
}

// A noticed store has new passages embedded soon.
type noticed struct {
	*document.Store
	embedder *embedding.Embedder // nil: there is none
}

// Put replaces all that is indexed of a document.
func (n noticed) Put(ctx context.Context, d document.Document) error {
	err := n.Store.Put(ctx, d)
	if n.embedder != nil {
		n.embedder.Kick()
	}
	return err
}

// Close closes idle connections.
func (l *Library) Close() error { return l.close() }

// spend makes calls within the budgets.
func (e Embed) spend(db *store.DB) func(ctx context.Context, user, tokens int64, call func() (int64, error)) error {
	return func(ctx context.Context, user, tokens int64, call func() (int64, error)) error {
		row := usage.Row{User: user, Model: "openai/" + e.Model, Input: tokens, Background: user == 0, Unread: true}
		row.MicroUSD = e.price(row)
		id, _, err := e.Ledger().Reserve(ctx, db, row)
		if err != nil {
			return err
		}
		took, err := call()
		settle := context.WithoutCancel(ctx)
		row.ID = id
		record := func() error {
			return db.Tx(settle, func(tx *store.Tx) error { return e.Ledger().Record(settle, tx, row) })
		}
		switch f := (*embed.Fault)(nil); {
		case err == nil:
			row.Input = took
			row.MicroUSD = e.price(row)
			return record()
		case ctx.Err() != nil || errors.As(err, &f) && f.Late: // the server may have done it all the same: as estimated
			return errors.Join(err, record())
		default:
			return errors.Join(err, e.Ledger().Release(settle, db, id))
		}
	}
}

func (e Embed) price(row usage.Row) *int64 {
	if cost, ok := e.Cost(row.Model, core.Tokens{Input: row.Input}); ok {
		return &cost
	}
	return nil
}
