import { AppError } from "../../kernel/errors.ts";
import { type FleetNodeRecord, listNodes } from "../../store/fleet/nodes.ts";
import type { Queryable } from "../../store/postgres/database.ts";

const ID = /^fn-[a-z0-9-]{1,60}$/;
const LONGEST = 320;

/** The node that a caller names: by its id, its host name, or `site/hostname` where several sites have one of that name. */
export async function findNode(db: Queryable, text: string, field = "node"): Promise<FleetNodeRecord> {
  if (text === "" || text.length > LONGEST || text.includes("\0"))
    throw new AppError("invalid_argument", `${field}: the id of a fleet node, or its host name, is required`, {
      field,
    });
  const found = await listNodes(db, queryFor(text));
  const [node, another] = found;
  if (another !== undefined)
    throw new AppError(
      "failed_precondition",
      `${field}: ${found.length} sites have a node ${text}; name one of ${found
        .map(({ site }) => `${site}/${text}`)
        .sort()
        .join(", ")}`,
      { field },
    );
  if (node) return node;
  throw new AppError("not_found", `fleet node ${text.slice(0, 80)} does not exist`, {
    field,
    next: "millwright fleet list",
  });
}

function queryFor(text: string) {
  if (ID.test(text)) return { ids: [text] };
  const at = text.indexOf("/");
  return at < 0 ? { hostname: text } : { site: text.slice(0, at), hostname: text.slice(at + 1) };
}
