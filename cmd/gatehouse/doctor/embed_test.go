package doctor

import (
	"strings"
	"testing"

	"gatehouse/configs/values"
	"gatehouse/core/llm/embedtest"
)

func TestDoctorAsksTheEmbeddingServer(t *testing.T) {
	server := embedtest.New(t, 96)
	p := healthySubject(t)
	if found, _ := examine(t, p, "embeddings"); found != nil {
		t.Errorf("without a server: %+v", found)
	}
	p.Config.EmbedURL, p.Config.EmbedModel, p.Config.EmbedAPIKey = server.URL, "small", values.NewSecret("topsecret-key")
	found, healthy := examine(t, p, "embeddings")
	if len(found) != 1 || found[0].State != OK || !healthy || !strings.Contains(found[0].Text, "96 dimensions") || !strings.Contains(found[0].Text, "gets the text") {
		t.Errorf("%+v", found)
	}
	p.Config.Index = "words"
	if found, _ := examine(t, p, "embeddings"); len(found) != 1 || found[0].State != OK || !strings.Contains(found[0].Text, "not used") {
		t.Errorf("%+v", found)
	}
	p.Config.Index = "on"
	server.Fail(func([]string) int { return 401 })
	found, healthy = examine(t, p, "embeddings")
	if len(found) != 1 || found[0].State != Fail || healthy || !strings.Contains(found[0].Text, "401") {
		t.Errorf("%+v", found)
	}
	p.Config.EmbedDimensions = 64
	server.Fail(nil)
	if found, _ = examine(t, p, "embeddings"); len(found) != 1 || found[0].State != Fail || !strings.Contains(found[0].Text, "96 dimensions, not 64") {
		t.Errorf("%+v", found)
	}
}
