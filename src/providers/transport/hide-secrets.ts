import type { BmcTarget } from "../../capabilities/bmc-target.ts";

/** What a request to a BMC carries that nobody may read anywhere else. */
export interface Carried {
  readonly target: Pick<BmcTarget, "username" | "password">;
  /** The session's token, if it was sent with one. */
  readonly token?: string | undefined;
}

/** The text without any of the secrets, in whichever of the usual spellings a BMC may repeat them. */
export function hideSecrets(text: string, { target: { username, password }, token = "" }: Carried): string {
  const basic = Buffer.from(`${username}:${password}`, "utf8").toString("base64");
  const secrets = password === "" ? [token] : [password, basic, base64(password), token];
  // Longest first: of two spellings one may hold the other, and half a secret must not be left over.
  const spellings = new Set(secrets.filter((secret) => secret !== "").flatMap(spellingsOf));
  let shown = text;
  for (const spelling of [...spellings].sort((a, b) => b.length - a.length)) shown = shown.replaceAll(spelling, "***");
  return shown;
}

const base64 = (text: string): string => Buffer.from(text, "utf8").toString("base64");

/** As it is, and as it is written in JSON, in an address, in a form and in HTML. */
function spellingsOf(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const ascii = json.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const url = encodeURIComponent(secret.toWellFormed());
  const form = new URLSearchParams([["", secret]]).toString().slice(1);
  const html = secret.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const quoted = html.replaceAll('"', "&quot;");
  const spellings = [secret, json, ascii, url, form, html, quoted, quoted.replaceAll("'", "&#39;")];
  return [
    ...spellings,
    json.replaceAll("/", "\\/"),
    ...[url, form].map((encoded) => encoded.replace(/%[0-9A-F]{2}/g, (octet) => octet.toLowerCase())),
  ];
}
