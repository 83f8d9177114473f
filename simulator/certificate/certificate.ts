import { generateKeyPairSync, hash, randomBytes, sign } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  bitString,
  boolean,
  type Der,
  explicit,
  implicit,
  integer,
  objectIdentifier,
  octetString,
  sequence,
  set,
  time,
  utf8String,
} from "./der.ts";

/** PEM texts, as `node:tls` takes them. */
export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

export const OID = {
  commonName: "2.5.4.3",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAlternativeName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  extendedKeyUsage: "2.5.29.37",
  serverAuthentication: "1.3.6.1.5.5.7.3.1",
} as const;

export const DAY_MS = 86_400_000;
const VALID_DAYS = 3_650;

/** More addresses would make every handshake carry more than a few kilobytes of them. */
const MOST_CERTIFIED_ADDRESSES = 512;

/**
 * The certificate that all simulated BMCs show, made on the first start and the same ever after, so that whoever pinned it
 * sees no change after a restart.
 */
export function loadOrCreateCertificate(
  dataDir: string,
  addresses: readonly string[],
  now: Date,
  /** Beside the one of all: whose it is. */
  of?: string,
): Certificate {
  const suffix = of === undefined ? "" : `-${of}`;
  const keyFile = join(dataDir, `tls-key${suffix}.pem`);
  const certFile = join(dataDir, `tls-cert${suffix}.pem`);
  if (existsSync(keyFile) && existsSync(certFile)) {
    return { key: readFileSync(keyFile, "utf8"), cert: readFileSync(certFile, "utf8") };
  }
  const made = createCertificate({ addresses: addresses.slice(0, MOST_CERTIFIED_ADDRESSES), now });
  // The certificate is renamed into place last: both files there means both files whole.
  for (const [file, text] of [
    [keyFile, made.key],
    [certFile, made.cert],
  ] as const) {
    writeFileSync(`${file}.new`, text, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }
  return made;
}

/** Self-signed and its own authority: a client that is given it as CA accepts it for the listed IPv4 addresses. */
export function createCertificate(options: {
  addresses: readonly string[];
  now: Date;
  commonName?: string;
}): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const subjectPublicKeyInfo = publicKey.export({ type: "spki", format: "der" });
  const algorithm = sequence(objectIdentifier(OID.ecdsaWithSha256));
  const name = sequence(
    set(sequence(objectIdentifier(OID.commonName), utf8String(options.commonName ?? "simulated BMC"))),
  );
  const start = options.now.getTime();
  const toBeSigned = sequence(
    explicit(0, integer(Uint8Array.of(2))), // version 3
    integer(Buffer.concat([Uint8Array.of(1), randomBytes(15)])),
    algorithm,
    name,
    sequence(time(new Date(start - DAY_MS)), time(new Date(start + VALID_DAYS * DAY_MS))),
    name,
    subjectPublicKeyInfo,
    explicit(3, extensions(options.addresses, subjectPublicKeyInfo)),
  );
  const signature = sign("sha256", toBeSigned, privateKey);
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: pem("CERTIFICATE", sequence(toBeSigned, algorithm, bitString(signature))),
  };
}

function extensions(addresses: readonly string[], subjectPublicKeyInfo: Uint8Array): Der {
  const names = [
    implicit(2, Buffer.from("localhost", "ascii")), // dNSName
    ...addresses.map((address) => implicit(7, Uint8Array.from(address.split(".").map(Number)))), // iPAddress
  ];
  const keyId = Buffer.from(hash("sha1", subjectPublicKeyInfo), "hex");
  return sequence(
    extension(OID.basicConstraints, true, sequence(boolean(true))),
    extension(OID.keyUsage, true, bitString(Uint8Array.of(0b1000_0100), 2)), // digitalSignature, keyCertSign
    extension(OID.extendedKeyUsage, false, sequence(objectIdentifier(OID.serverAuthentication))),
    extension(OID.subjectKeyIdentifier, false, octetString(keyId)),
    extension(OID.subjectAlternativeName, false, sequence(...names)),
  );
}

const extension = (id: string, critical: boolean, value: Der): Der =>
  critical
    ? sequence(objectIdentifier(id), boolean(true), octetString(value))
    : sequence(objectIdentifier(id), octetString(value));

export const pem = (label: string, der: Der): string => {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
};
