import ssh2 from "ssh2";
import { describe, expect, test } from "vitest";
import { ed25519Key } from "./ed25519-key.ts";

const SECRET = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";

describe("an Ed25519 key", () => {
  test("has the public half that RFC 8032 gives for its first test vector", () => {
    const blob = Buffer.from(ed25519Key(SECRET).publicKey.split(" ")[1] ?? "", "base64");
    expect(blob.subarray(-32).toString("hex")).toBe("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  });

  test("is read by others in the form that OpenSSH writes", () => {
    const { privateKey, publicKey } = ed25519Key(SECRET);
    const parsed = ssh2.utils.parseKey(privateKey);
    if (parsed instanceof Error || Array.isArray(parsed)) throw new Error("not one key");
    expect(parsed.isPrivateKey()).toBe(true);
    expect(`ssh-ed25519 ${parsed.getPublicSSH().toString("base64")}`).toBe(publicKey);
  });
});
