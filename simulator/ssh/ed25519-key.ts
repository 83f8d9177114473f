import { createPrivateKey, createPublicKey } from "node:crypto";

/** A key pair in the forms that OpenSSH reads and writes. */
export interface SshKey {
  /** `-----BEGIN OPENSSH PRIVATE KEY-----` … */
  readonly privateKey: string;
  /** `ssh-ed25519 AAAA…` */
  readonly publicKey: string;
}

/** What stands before the 32 secret bytes in the PKCS#8 form of an Ed25519 key. */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");
const ALGORITHM = "ssh-ed25519";
const PADDED_TO = 8;

/** @param secretHex 64 hexadecimal digits; the same ones make the same key. */
export function ed25519Key(secretHex: string): SshKey {
  const secret = Buffer.from(secretHex, "hex");
  const privateKey = createPrivateKey({
    key: Buffer.concat([PKCS8_PREFIX, secret]),
    format: "der",
    type: "pkcs8",
  });
  // The 32 bytes of the public key are the end of its SubjectPublicKeyInfo.
  const publicBytes = createPublicKey(privateKey).export({ format: "der", type: "spki" }).subarray(-32);
  const publicBlob = Buffer.concat([field(ALGORITHM), field(publicBytes)]);
  return {
    privateKey: armoured(container(publicBlob, privatePart(secret, publicBytes))),
    publicKey: `${ALGORITHM} ${publicBlob.toString("base64")}`,
  };
}

/** The `openssh-key-v1` container, without encryption. */
const container = (publicBlob: Buffer, privateBlob: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from("openssh-key-v1\0", "latin1"),
    field("none"), // cipher
    field("none"), // key derivation
    field(""),
    uint32(1), // one key
    field(publicBlob),
    field(privateBlob),
  ]);

function privatePart(secret: Buffer, publicBytes: Buffer): Buffer {
  // Two equal numbers, by which a reader sees that it decrypted well; any will do where nothing is encrypted.
  const check = secret.subarray(0, 4);
  const parts = Buffer.concat([
    check,
    check,
    field(ALGORITHM),
    field(publicBytes),
    field(Buffer.concat([secret, publicBytes])),
    field(""), // comment
  ]);
  const missing = (PADDED_TO - (parts.length % PADDED_TO)) % PADDED_TO;
  return Buffer.concat([parts, Buffer.from(Array.from({ length: missing }, (_, index) => index + 1))]);
}

function armoured(bytes: Buffer): string {
  const lines = bytes.toString("base64").match(/.{1,70}/g) ?? [];
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines.join("\n")}\n-----END OPENSSH PRIVATE KEY-----\n`;
}

function field(value: string | Buffer): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint32(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
