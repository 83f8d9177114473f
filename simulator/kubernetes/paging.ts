import { type ApiCall, type ApiReply, failure, ok } from "./api-call.ts";

interface ContinueToken {
  /** What was listed last; the next page begins behind it. */
  readonly after: string;
  /** The version of the list that is being read. */
  readonly version: number;
}

/** A list, or one page of it: `limit` and `continue` as API servers have them. */
export function pageOf<T>(
  call: Pick<ApiCall, "cluster" | "query">,
  kind: string,
  items: readonly T[],
  keyOf: (item: T) => string,
): ApiReply {
  const asked = readQuery(call);
  if ("status" in asked) return asked;
  const { limit, from } = asked;
  const sorted = items.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const rest = from === undefined ? sorted : sorted.filter((item) => keyOf(item) > from.after);
  const page = limit === 0 ? rest : rest.slice(0, limit);
  const version = from?.version ?? call.cluster.version;
  const last = page.at(-1);
  const left = rest.length - page.length;
  const more = last !== undefined &&
    left > 0 && { continue: print({ after: keyOf(last), version }), remainingItemCount: left };
  return ok({ kind, apiVersion: "v1", metadata: { resourceVersion: String(version), ...more }, items: page });
}

function readQuery({ cluster, query }: Pick<ApiCall, "cluster" | "query">) {
  const limit = Number(query.get("limit") ?? "0");
  if (!Number.isInteger(limit) || limit < 0) return failure(400, `limit: Invalid value: "${query.get("limit")}"`);
  const given = query.get("continue") ?? "";
  if (given === "") return { limit, from: undefined };
  const from = parse(given);
  if (from === undefined) return failure(400, `continue key is not valid: ${given.slice(0, 40)}`);
  if (from.version < cluster.compactedAt)
    return failure(
      410,
      "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
      "Expired",
    );
  return { limit, from };
}

const print = (token: ContinueToken): string => Buffer.from(JSON.stringify(token)).toString("base64url");

function parse(text: string): ContinueToken | undefined {
  try {
    const token = JSON.parse(Buffer.from(text, "base64url").toString("utf8")) as Partial<ContinueToken>;
    return typeof token.after === "string" && typeof token.version === "number" ? (token as ContinueToken) : undefined;
  } catch {
    return undefined;
  }
}
