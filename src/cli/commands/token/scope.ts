import type { MessageInitShape } from "@bufbuild/protobuf";
import type { TokenScope, TokenScopeSchema } from "../../../../contract/millwright/v1/token_pb.js";
import { UsageError } from "../../client/errors.ts";

const LIMITS = ["methods", "racks", "clusters", "customers", "labels"] as const;
type Limit = (typeof LIMITS)[number];
const isLimit = (word: string): word is Limit => LIMITS.some((limit) => limit === word);

/** `methods=runs,machines`, `labels=env=test`; each limit once or several times. */
export function parseScope(words: readonly string[]): MessageInitShape<typeof TokenScopeSchema> {
  const scope: Record<Limit, string[]> = { methods: [], racks: [], clusters: [], customers: [], labels: [] };
  for (const word of words) {
    const [limit = "", list = ""] = word.split(/=(.*)/s, 2);
    const values = list.split(",").map((value) => value.trim());
    if (!isLimit(limit) || values.includes(""))
      throw new UsageError(`--scope: ${JSON.stringify(word)} is not ${LIMITS.map((each) => `${each}=A,B`).join(", ")}`);
    scope[limit].push(...values);
  }
  return scope;
}

/** As it was typed. */
export const scopeText = (scope: TokenScope | undefined): string =>
  LIMITS.flatMap((limit) => (scope && scope[limit].length > 0 ? [`${limit}=${scope[limit].join(",")}`] : [])).join(" ");
