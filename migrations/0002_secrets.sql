-- Passwords and keys, encrypted with a key from outside the database. The name is authenticated with the value,
-- so that a row under another name does not decrypt.
CREATE TABLE secrets (
  name       text        PRIMARY KEY,
  key_id     text        NOT NULL,
  nonce      bytea       NOT NULL CHECK (octet_length(nonce) = 12),
  ciphertext bytea       NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now()
);
