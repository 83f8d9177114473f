/** Fields whose value is never logged, whatever they sit in: `password`, `bmcPassword`, `set-cookie`, `access_token` … */
const SECRET_KEY = /passw(or)?d|passphrase|secret|token|authorization|cookie|private_?key|api_?key|credential/i;
/** Names that match although they hold nothing secret. */
const HARMLESS_KEY = /^(token_?id|page_?token|next_?page_?token|secret_?(key_?file|name))$/i;

const HIDDEN = "[hidden]";

const MAX_DEPTH = 8;

/** A copy without secrets. Depth is bounded, so that a cycle or a huge object cannot hang the logger. */
export function withoutSecrets(value: unknown, depth = 0): unknown {
  if (typeof value !== "object" || value === null || value instanceof Error || value instanceof Date) return value;
  if (depth >= MAX_DEPTH) return "[too deep]";
  if (Array.isArray(value)) return value.map((item) => withoutSecrets(item, depth + 1));
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      SECRET_KEY.test(key) && !HARMLESS_KEY.test(key) ? HIDDEN : withoutSecrets(item, depth + 1),
    ]),
  );
}

/** What gives itself away by its form, in any text: passwords in URLs, authorization headers, our own tokens, JSON Web Tokens. */
const SECRET_TEXT: readonly (readonly [RegExp, string])[] = [
  [/\b([a-z][a-z0-9+.-]*:\/\/[^\s/:@"']*):[^\s/@"']+@/gi, `$1:${HIDDEN}@`],
  [/\b(bearer|basic) +[\w.~+/=-]{8,}/gi, `$1 ${HIDDEN}`],
  [/\bmw_([0-9a-f]{16})_[0-9a-f]{64}\b/g, `mw_$1_${HIDDEN}`],
  [/\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, HIDDEN],
];

export function withoutSecretText(text: string): string {
  return SECRET_TEXT.reduce((rest, [pattern, replacement]) => rest.replace(pattern, replacement), text);
}
