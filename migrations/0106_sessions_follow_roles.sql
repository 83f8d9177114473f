-- Sessions are held to what the configuration says today. What the roles of a JSON Web Token or of a client certificate came from is kept: the
-- values of its claim, or what of its subject the mapping may name. Null: an earlier version made the session, or a token's speaks for itself.
alter table console_sessions add column grounds text[];
-- Those of one credential, the newest first: they are bounded.
create index console_sessions_of_credential on console_sessions (credential_kind, credential_ref, name, created_at desc, id);
