-- +goose Up
-- --------------------------------------------------------- core/index/document
-- The model that made the embedding (core/index/embedding numbers them); 0: none yet.
ALTER TABLE chunks ADD COLUMN embedder INTEGER NOT NULL DEFAULT 0;
CREATE INDEX chunks_embedder ON chunks(embedder);

-- ----------------------------------------------------------- core/index/vector
-- The signs of the embeddings of 256 consecutive chunks, to choose the near ones by.
CREATE TABLE chunk_signs (
    model INTEGER NOT NULL,
    block INTEGER NOT NULL,                 -- chunks.n / 256
    slots BLOB NOT NULL,
    PRIMARY KEY (model, block)
);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
