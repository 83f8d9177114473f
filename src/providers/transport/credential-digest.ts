import { createHmac, randomBytes } from "node:crypto";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";

// Made anew in each process: the digest tells "the same credentials as before" here and is worth nothing anywhere else.
const key = randomBytes(32);

/** Stands for a user name and password wherever they must be compared later but not kept. */
export function credentialDigest(target: Pick<BmcTarget, "username" | "password">): string {
  return createHmac("sha256", key)
    .update(JSON.stringify([target.username, target.password]))
    .digest("base64");
}
