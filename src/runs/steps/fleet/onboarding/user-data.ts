import { createHash } from "node:crypto";

/**
 * What cloud-init is given: the bundle of the site first, then what starts the agent. Two documents go as one archive of MIME, which
 * cloud-init reads in their order. It follows from its parts alone, so that it is the same however often it is made.
 */
export function joinUserData(bundle: string | null, agent: string): string {
  if (bundle === null) return agent;
  const boundary = createHash("sha256").update(bundle).update(agent).digest("hex").slice(0, 32);
  const part = (text: string, name: string) =>
    [
      `--${boundary}`,
      `Content-Type: ${typeOf(text)}; charset="utf-8"`,
      "MIME-Version: 1.0",
      "Content-Transfer-Encoding: base64",
      `Content-Disposition: attachment; filename="${name}"`,
      "",
      ...(Buffer.from(text, "utf8")
        .toString("base64")
        .match(/.{1,76}/g) ?? []),
      "",
    ].join("\n");
  const head = `Content-Type: multipart/mixed; boundary="${boundary}"\nMIME-Version: 1.0\n\n`;
  return `${head}${part(bundle, "site-bundle")}${part(agent, "millwright-agent")}--${boundary}--\n`;
}

/** By its first line, as cloud-init tells them apart itself; undefined for what cloud-init would not run. */
export function typeOfUserData(text: string): string | undefined {
  if (text.startsWith("#cloud-config")) return "text/cloud-config";
  if (text.startsWith("#!")) return "text/x-shellscript";
  if (text.startsWith("#include")) return "text/x-include-url";
  return undefined;
}

const typeOf = (text: string): string => typeOfUserData(text) ?? "text/plain";
