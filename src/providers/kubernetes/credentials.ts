import { X509Certificate } from "node:crypto";
import type { ClusterCredentials } from "../../capabilities/cluster-target.ts";
import { numberAt } from "../transport/device-json.ts";
import { parseJson } from "../transport/http-answer.ts";

/** "; its token expired at …", for people; empty where the credentials do not say that they have. */
export function expiredSince(credentials: ClusterCredentials, now: Date = new Date()): string {
  const end = endOf(credentials);
  if (end === undefined || end > now) return "";
  const what = "token" in credentials ? "token" : "client certificate";
  return `; its ${what} expired at ${end.toISOString()}`;
}

/** Tokens of service accounts are JWTs, which say when they end; others may say nothing. */
function endOf(credentials: ClusterCredentials): Date | undefined {
  if ("token" in credentials) {
    const payload = Buffer.from(credentials.token.split(".")[1] ?? "", "base64url").toString("utf8");
    const seconds = numberAt(parseJson(payload), "exp");
    return seconds === undefined ? undefined : dated(seconds * 1_000);
  }
  try {
    return dated(new X509Certificate(credentials.certificate).validToDate.getTime());
  } catch {
    return undefined;
  }
}

const dated = (at: number): Date | undefined => (Math.abs(at) <= 8.64e15 ? new Date(at) : undefined);
