import { AppError } from "../../kernel/errors.ts";
import { CATALOG_KINDS } from "../catalog/audit.ts";
import { SAVED_VIEW_KIND } from "../overview/saved-view-kind.ts";
import { SESSION_KIND } from "../system/sessions.ts";
import { TOKEN_KIND } from "../system/tokens.ts";
import type { ServiceDeps } from "./deps.ts";

/** Everything that the journal tells of: the things with a lifecycle, and what is only audited. */
export function checkKind(deps: ServiceDeps, kind: string, field: string): void {
  const known = [...deps.stores.keys(), ...CATALOG_KINDS, TOKEN_KIND, SESSION_KIND, SAVED_VIEW_KIND].sort();
  if (known.includes(kind)) return;
  const shown = JSON.stringify(kind.slice(0, 80));
  throw new AppError("invalid_argument", `${field}: ${shown} is none of ${known.join(", ")}`, { field });
}
