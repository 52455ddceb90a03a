package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

func main() {
	ctx := context.Background()
	client := openai.NewClient(option.WithBaseURL(os.Getenv("GATEHOUSE_URL")+"/v1/"), option.WithAPIKey(os.Getenv("GATEHOUSE_KEY")))
	input := responses.ResponseNewParamsInputUnion{OfString: openai.String("What do I have on tea?")}
	first, err := client.Responses.New(ctx, responses.ResponseNewParams{Model: "vault-agent", Input: input})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.OutputText())
	input.OfString = openai.String("And on black tea?")
	stream := client.Responses.NewStreaming(ctx, responses.ResponseNewParams{Model: "vault-agent", Input: input, PreviousResponseID: openai.String(first.ID)})
	defer stream.Close()
	for stream.Next() {
		fmt.Print(stream.Current().Delta)
	}
	if err := stream.Err(); err != nil {
		log.Fatal(err)
	}
}
