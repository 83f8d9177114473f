import type { SignIn } from "../../capabilities/seeds/seed.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/lifecycle.ts";

const listOf = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : []);
const once = (keys: readonly Json[]): Json[] => [...new Set(keys)];

/**
 * The users of a cloud-config, with the one that signs in. Where the document has an account of that name, the key joins the account's own:
 * of two entries of one name cloud-init takes each member from the first that has it, and the key of the second would be lost.
 */
export function withCloudUser(users: Json | undefined, { username, publicKey }: SignIn): Json {
  const added = {
    shell: "/bin/bash",
    sudo: "ALL=(ALL) NOPASSWD:ALL",
    lock_passwd: true,
    ssh_authorized_keys: [publicKey],
  };
  if (isJsonObject(users)) {
    const known = users[username];
    return { ...users, [username]: isJsonObject(known) ? withKey({ ...added, ...known }, publicKey) : added };
  }
  const listed = typeof users === "string" ? namesIn(users) : (users ?? ["default"]);
  if (!Array.isArray(listed)) return [{ name: username, ...added }];
  const at = listed.findIndex((user) => isJsonObject(user) && user.name === username);
  const known = listed[at];
  if (!isJsonObject(known)) return [...listed, { name: username, ...added }];
  return listed.with(at, withKey({ ...added, ...known }, publicKey));
}

/** Of names in a list cloud-init keeps the blanks, of names in one text it does not. */
const namesIn = (users: string): string[] => users.split(",").map((name) => name.trim());

/** cloud-init reads dashes as underscores, and of both spellings the one that comes last. */
function withKey(user: JsonObject, publicKey: string): JsonObject {
  const { "ssh-authorized-keys": dashed, ssh_authorized_keys: keys, ...rest } = user;
  return { ...rest, ssh_authorized_keys: once([...listOf(dashed), ...listOf(keys), publicKey]) };
}

/** Ignition refuses a config that names a user twice. */
export function withIgnitionUser(users: Json | undefined, { username, publicKey }: SignIn): Json[] {
  const listed = listOf(users);
  const at = listed.findIndex((user) => isJsonObject(user) && user.name === username);
  const known = listed[at];
  if (!isJsonObject(known)) return [...listed, { name: username, sshAuthorizedKeys: [publicKey] }];
  return listed.with(at, { ...known, sshAuthorizedKeys: once([...listOf(known.sshAuthorizedKeys), publicKey]) });
}
