package doctor

import (
	"context"
	"fmt"

	"gatehouse/core/llm/embed"
)

// checkEmbedding asks the server of EMBED_URL to embed a word, where one is configured.
func checkEmbedding(ctx context.Context, p Subject) []Finding {
	c := p.Config
	if c.EmbedURL == "" {
		return nil
	}
	f := Finding{Name: "embeddings", State: OK}
	if c.Index != "on" {
		f.Text = fmt.Sprintf("not used: GATEHOUSE_INDEX is %s, so documents are not found by their meaning", c.Index)
		return []Finding{f}
	}
	key := c.EmbedAPIKey.Reveal()
	if key == "" && c.SameServer(c.EmbedURL) {
		key = c.OpenaiAPIKey.Reveal()
	}
	client, err := embed.New(embed.Options{URL: c.EmbedURL, Model: c.EmbedModel, Key: key, Dimensions: c.EmbedDimensions})
	if err == nil {
		defer client.Close()
		var vectors [][]float32
		if vectors, _, err = client.Embed(ctx, []string{"word"}); err == nil {
			f.Text = fmt.Sprintf("%s answers with %d dimensions; its server gets the text of documents and searches", c.EmbedModel, len(vectors[0]))
			return []Finding{f}
		}
	}
	f.State, f.Text = Fail, fmt.Sprintf("%s: %v; documents are found by their words alone", c.EmbedModel, err)
	f.Fix = "check GATEHOUSE_EMBED_URL, GATEHOUSE_EMBED_MODEL and GATEHOUSE_EMBED_API_KEY"
	return []Finding{f}
}
