import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { AppError, messageOf } from "../kernel/errors.ts";

const ONE = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/** The certificates of a PEM bundle. Refused at the start if it holds none: every device would be mistrusted, for no visible reason. */
export function readCaCertificates(file: string, setting: string): readonly string[] {
  const refuse = (why: string) =>
    new AppError("failed_precondition", `${setting}: ${file} ${why}`, {
      field: setting,
      next: "give the path of a file with one or more certificates in PEM",
    });
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw refuse(`cannot be read: ${messageOf(error)}`);
  }
  const found = text.match(ONE) ?? [];
  if (found.length === 0) throw refuse("holds no certificate in PEM");
  found.forEach((pem, index) => {
    try {
      new X509Certificate(pem);
    } catch {
      throw refuse(`holds something else than a certificate as number ${index + 1}`);
    }
  });
  return found;
}
