import type { Word, WordPart } from "./syntax.ts";

type Expand = (part: WordPart) => Promise<string>;

/** A word becomes none, one or several fields: what an unquoted variable holds is split at white space. */
export async function expandToFields(word: Word, expand: Expand): Promise<string[]> {
  const fields: string[] = [];
  let open: string | undefined;
  for (const part of word) {
    const text = await expand(part);
    if (part.quoted || part.kind === "text") {
      open = (open ?? "") + text;
      continue;
    }
    for (const [index, piece] of text.split(/\s+/).entries()) {
      if (index > 0 && open !== undefined) {
        fields.push(open);
        open = undefined;
      }
      if (piece !== "") open = (open ?? "") + piece;
    }
  }
  if (open !== undefined) fields.push(open);
  return fields;
}

/** As in an assignment or a here-document, where nothing is split. */
export async function expandToText(word: Word, expand: Expand): Promise<string> {
  let text = "";
  for (const part of word) text += await expand(part);
  return text;
}
