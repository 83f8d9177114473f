import type { PeerCertificate } from "node:tls";
import { type Identity, identityOf, unauthenticated } from "./identity.ts";

/** What of a verified client certificate counts. */
export type ClientCertificate = Pick<PeerCertificate, "subject" | "subjectaltname"> &
  Partial<Pick<PeerCertificate, "valid_to">>;

/** `spiffe://…` (a trailing `/*` covers all below), `CN=…` or `OU=…` → roles. */
export type CertificateRoles = Readonly<Record<string, readonly string[]>>;

/**
 * The caller that a certificate stands for: its SPIFFE id if it has one, else its common name. Roles of all entries that match
 * add up; a SPIFFE id is matched by `spiffe://` entries alone, so that a workload cannot gain a person's roles by a fancy subject.
 *
 * A certificate with any `spiffe:` URI is a workload's. One that is no good SPIFFE identity is refused: falling back to its subject would let
 * a workload that spoils its own URI pass as a person. Two ids or two common names are refused too, since nobody could say which one calls.
 */
export function identifyCertificate(
  certificate: ClientCertificate,
  mapping: CertificateRoles,
  now = new Date(),
): Identity {
  // Checked when the connection was made; but connections, and streams on them, outlast certificates.
  const validUntil = certificate.valid_to === undefined ? undefined : new Date(certificate.valid_to);
  if (validUntil !== undefined && validUntil <= now)
    throw unauthenticated(`the client certificate was valid until ${validUntil.toISOString()}`);
  const spiffe = spiffeIdOf(certificate.subjectaltname ?? "");
  const { CN, OU } = certificate.subject as { CN?: string | string[]; OU?: string | string[] };
  const [commonName, ...moreNames] = listed(CN);
  if (moreNames.length > 0) throw unauthenticated("the client certificate has several common names");
  if (spiffe === undefined && commonName === undefined) {
    throw unauthenticated("the client certificate has neither a SPIFFE id nor a common name");
  }
  const grounds =
    spiffe === undefined ? [...listed(CN).map((cn) => `CN=${cn}`), ...listed(OU).map((ou) => `OU=${ou}`)] : [spiffe];
  const identity: Identity = {
    ...identityOf(spiffe ?? commonName ?? "", rolesOfCertificate(grounds, mapping), "the client certificate"),
    credential: { kind: "certificate", ref: null, grounds },
  };
  return validUntil === undefined ? identity : { ...identity, validUntil };
}

/** The roles that a SPIFFE id, or the names of a subject, stand for. */
export function rolesOfCertificate(grounds: readonly string[], mapping: CertificateRoles): string[] {
  const granted = Object.entries(mapping).flatMap(([pattern, roles]) =>
    grounds.some((ground) => ground === pattern || matchesSpiffe(pattern, ground)) ? roles : [],
  );
  return [...new Set(granted)];
}

const listed = (value: string | string[] | undefined): string[] =>
  value === undefined ? [] : typeof value === "string" ? [value] : value;

function matchesSpiffe(pattern: string, id: string): boolean {
  return pattern.startsWith("spiffe:") && pattern.endsWith("/*") && id.startsWith(pattern.slice(0, -1));
}

/** One entry of Node's text form: `URI:spiffe://…, DNS:…`; a value with a comma or a quote in it comes as a JSON string. */
const ENTRY = /(?:^|, )([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^,]*)/g;
const SPIFFE_ID = /^spiffe:\/\/[a-z0-9._-]+\/[A-Za-z0-9._/-]+$/;
/** Schemes are not told apart by case, and a quoted value begins with its quote. */
const CLAIMS_SPIFFE = /^"?\s*spiffe:/i;

/** Undefined only where the certificate claims no SPIFFE identity at all. Several URIs make none, says the SPIFFE standard: which would speak? */
function spiffeIdOf(subjectAltName: string): string | undefined {
  const uris = [...subjectAltName.matchAll(ENTRY)]
    .filter(([, type]) => type === "URI")
    .map(([, , value]) => value ?? "");
  if (!uris.some((uri) => CLAIMS_SPIFFE.test(uri))) return undefined;
  const [only] = uris;
  if (uris.length > 1)
    throw unauthenticated(
      "the client certificate has a SPIFFE id beside other URIs; a SPIFFE certificate has exactly one",
    );
  if (only === undefined || !SPIFFE_ID.test(only))
    throw unauthenticated("the client certificate has a spiffe: URI that is no SPIFFE id");
  return only;
}
