import { createPublicKey, generateKeyPairSync, randomBytes, sign, verify, X509Certificate } from "node:crypto";
import { type Certificate, DAY_MS, OID, pem } from "./certificate.ts";
import {
  bitString,
  type Der,
  explicit,
  integer,
  objectIdentifier,
  octetString,
  sequence,
  set,
  time,
  utf8String,
} from "./der.ts";

/** Whom a certificate is for. */
export interface Subject {
  readonly commonName: string;
  readonly organization: string;
}

const ORGANIZATION = "2.5.4.10";
const CLIENT_AUTHENTICATION = "1.3.6.1.5.5.7.3.2";
const ALGORITHM = sequence(objectIdentifier(OID.ecdsaWithSha256));

const attribute = (id: string, text: string): Der => set(sequence(objectIdentifier(id), utf8String(text)));
const nameOf = ({ commonName, organization }: Subject): Der =>
  sequence(
    ...(organization === "" ? [] : [attribute(ORGANIZATION, organization)]),
    attribute(OID.commonName, commonName),
  );

/** For whoever has the private key that belongs to `publicKey` (a SubjectPublicKeyInfo), signed by an authority of ours. */
export function issueCertificate(
  authority: Certificate,
  subject: Subject,
  { publicKey, now, days = 365 }: { readonly publicKey: Uint8Array; readonly now: Date; readonly days?: number },
): string {
  const issuer = /CN=(.+)/.exec(new X509Certificate(authority.cert).subject)?.[1] ?? "";
  const usage = sequence(
    objectIdentifier(OID.extendedKeyUsage),
    octetString(sequence(objectIdentifier(CLIENT_AUTHENTICATION))),
  );
  const toBeSigned = sequence(
    explicit(0, integer(Uint8Array.of(2))), // version 3
    integer(Buffer.concat([Uint8Array.of(1), randomBytes(15)])),
    ALGORITHM,
    nameOf({ commonName: issuer, organization: "" }),
    sequence(time(new Date(now.getTime() - 2 * DAY_MS)), time(new Date(now.getTime() + days * DAY_MS))),
    nameOf(subject),
    publicKey,
    explicit(3, sequence(usage)),
  );
  return pem("CERTIFICATE", sequence(toBeSigned, ALGORITHM, bitString(sign("sha256", toBeSigned, authority.key))));
}

/** A key pair of somebody's own, and the request to have it certified (PKCS #10). */
export function createRequest(subject: Subject): { readonly key: string; readonly request: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const info = sequence(
    integer(Uint8Array.of(0)),
    nameOf(subject),
    publicKey.export({ type: "spki", format: "der" }),
    Uint8Array.of(0xa0, 0), // no attributes
  );
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    request: pem("CERTIFICATE REQUEST", sequence(info, ALGORITHM, bitString(sign("sha256", info, privateKey)))),
  };
}

/** Undefined for what is no request, or not signed with its own key. */
export function readRequest(text: string): (Subject & { readonly publicKey: Uint8Array }) | undefined {
  try {
    const der = Buffer.from(text.replace(/-----[^-]+-----|\s/g, ""), "base64");
    const [info, , signature] = childrenOf(der) as [Buffer, Buffer, Buffer];
    const [, name, publicKey] = childrenOf(info) as [Buffer, Buffer, Buffer];
    const key = createPublicKey({ key: publicKey, format: "der", type: "spki" });
    // The first byte of a bit string says how many bits of its last one are unused.
    if (!verify("sha256", info, key, contentsOf(signature).subarray(1))) return undefined;
    const parts = childrenOf(name).map((one) => childrenOf(childrenOf(one)[0] ?? Buffer.alloc(0)));
    const textOf = (id: string): string => {
      const wanted = Buffer.from(objectIdentifier(id));
      const value = parts.find(([oid]) => oid !== undefined && wanted.equals(oid))?.[1];
      return value === undefined ? "" : contentsOf(value).toString("utf8");
    };
    return { commonName: textOf(OID.commonName), organization: textOf(ORGANIZATION), publicKey };
  } catch {
    return undefined;
  }
}

function headerOf(element: Buffer): { readonly from: number; readonly length: number } {
  const first = element[1] ?? 0;
  if (first < 0x80) return { from: 2, length: first };
  const bytes = first & 0x7f;
  return { from: 2 + bytes, length: element.readUIntBE(2, bytes) };
}

function contentsOf(element: Buffer): Buffer {
  const { from, length } = headerOf(element);
  return element.subarray(from, from + length);
}

function childrenOf(element: Buffer): Buffer[] {
  const children: Buffer[] = [];
  for (let rest = contentsOf(element); rest.length > 0; ) {
    const { from, length } = headerOf(rest);
    children.push(rest.subarray(0, from + length));
    rest = rest.subarray(from + length);
  }
  return children;
}
