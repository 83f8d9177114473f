-- Passwords and keys, encrypted with a key from outside the database. The name is authenticated with the value,
-- so that a row under another name does not decrypt.
CREATE TABLE secrets (
  name       text        PRIMARY KEY,
  key_id     text        NOT NULL,
  nonce      bytea       NOT NULL CHECK (octet_length(nonce) = 12),
  ciphertext bytea       NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now()
);

-- The keys that this database's secrets may be encrypted with: a replica that has none of them has the wrong key file.
CREATE TABLE secret_keys (
  key_id        text        PRIMARY KEY,
  is_first      boolean     NOT NULL DEFAULT false,
  first_seen_at timestamptz NOT NULL DEFAULT now()
);
-- Of two replicas that start at once on an empty database, one key wins.
CREATE UNIQUE INDEX secret_keys_one_first ON secret_keys (is_first) WHERE is_first;
