import { z } from "zod";
import type { Upload } from "./upload.ts";

const PARAMETERS = "UpdateParameters";
const FILE = "UpdateFile";
const parametersSchema = z.object({ Targets: z.array(z.string().max(500)).max(16).optional() });

/** What a multipart update says and where its image begins; the standard has the parameters come first. */
export function readMultipart(
  upload: Upload,
): { readonly head: Buffer; readonly targets: readonly string[] } | { readonly malformed: string } {
  const boundary = /^multipart\/form-data;.*\bboundary="?([^";]{1,70})"?/i.exec(upload.contentType)?.[1];
  if (boundary === undefined) return { malformed: "it must be multipart/form-data with a boundary." };
  const parts = partsOf(upload.head, `--${boundary}`);
  const parameters = parts.find(({ name }) => name === PARAMETERS);
  const file = parts.find(({ name }) => name === FILE);
  if (parameters === undefined) return { malformed: `the part ${PARAMETERS} is missing, or comes after ${FILE}.` };
  if (file === undefined) return { malformed: `the part ${FILE} is missing.` };
  const read = parametersSchema.safeParse(jsonOf(parameters.content.toString("utf8")));
  if (!read.success) return { malformed: `the part ${PARAMETERS} is not what it should be.` };
  return { head: file.content, targets: read.data.Targets ?? [] };
}

/** Of the last one only what was kept. */
function partsOf(head: Buffer, delimiter: string): readonly { readonly name: string; readonly content: Buffer }[] {
  const parts: { name: string; content: Buffer }[] = [];
  for (let start = head.indexOf(delimiter); start !== -1; ) {
    const next = head.indexOf(`\r\n${delimiter}`, start + delimiter.length);
    const part = head.subarray(start + delimiter.length + 2, next === -1 ? head.length : next);
    const end = part.indexOf("\r\n\r\n");
    const name = /\bname="?([^";\r\n]+)"?/i.exec(part.subarray(0, Math.max(end, 0)).toString("latin1"))?.[1];
    if (end !== -1 && name !== undefined) parts.push({ name, content: part.subarray(end + 4) });
    start = next === -1 ? -1 : next + 2;
  }
  return parts;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
