import { randomUUID } from "node:crypto";
import type { InstallState, InstallStep } from "../../../lifecycles/install/install.ts";
import { isRebooting } from "../../../lifecycles/install/install-steps.ts";
import type { InstallRecord } from "../../../store/install/installs.ts";
import { recordChange } from "../../../store/lifecycle/changes.ts";
import { commitOrRefuse } from "../../../store/lifecycle/commit/commit-or-refuse.ts";
import { storeOf } from "../../../store/lifecycle/things.ts";
import { applyVerb } from "../../../store/lifecycle/verbs.ts";
import type { Transaction } from "../../../store/postgres/database.ts";
import type { Caller } from "../../call/caller.ts";
import { nowOf, type ServiceDeps } from "../../call/deps.ts";
import { INSTALL_KIND } from "../key.ts";
import { DEFAULT_BINDING, hashToken, tokenOf } from "../report-token.ts";
import { ARMED_FOR, type Asked, bootOf, isWithin } from "./armed-boot.ts";
import type { BootRequest } from "./boot.ts";

/** States in which a script that is handed out begins what was begun before once more. */
const BEGINS_ANEW: ReadonlySet<string> = new Set<InstallState>(["installing", "deprovisioning"]);

interface HandingOut {
  readonly node: Caller;
  readonly request: BootRequest;
  readonly install: InstallRecord;
  readonly asked: Asked;
  readonly steps?: readonly InstallStep[];
}

/**
 * The token of this boot: that of the boot before where it is the same one. An attempt that follows a failed one begins here. Whoever contests a
 * boot gets a script too, and begins nothing: what the first one has done stays as it is.
 */
export async function handOut(tx: Transaction, deps: ServiceDeps, handing: HandingOut): Promise<string> {
  const { node, request, install, asked, steps = [] } = handing;
  const token = tokenOf(deps, asked.boot, request.address);
  const by = { actor: node.name ?? "", address: node.address };
  if (asked.as === "contested") {
    await noteContest(tx, deps, install, { ...asked, ...by });
    return token;
  }
  if (steps.length > 0 || install.facts.steps.length > 0)
    await commitOrRefuse(tx, deps.stores, [{ kind: INSTALL_KIND, thing: install, facts: { steps }, ...by }]);
  const { id } = install;
  const { armedBy } = asked.boot;
  await recordChange(tx, storeOf(deps.stores, INSTALL_KIND), {
    id,
    type: "script_handed_out",
    ...by,
    data: { attempt: install.facts.installAttempts + 1, armed_by: armedBy },
    set: {
      report_token_hash: hashToken(token),
      boot: asked.boot,
      ...(asked.as === "new" && { armed_at: null, armed_by: null }),
    },
    touchesBasis: true,
  });
  if (BEGINS_ANEW.has(install.state.name) && !isRebooting(install)) {
    const now = nowOf(deps).toISOString();
    const data = { now };
    await applyVerb(tx, deps.stores, {
      kind: INSTALL_KIND,
      id,
      owner: "other",
      name: "script_handed_out",
      data,
      ...by,
    });
  }
  return token;
}

/**
 * Somebody asks for the script of a boot that another address was given it for, and gets none: where that led to an installed system, or to one that
 * is retired, it may have been a stranger who reported it.
 */
export async function noteRival(
  tx: Transaction,
  deps: ServiceDeps,
  { node, install, asked }: HandingOut,
): Promise<void> {
  if (asked.as !== "contested" || !isWithin(deps.armedFor ?? ARMED_FOR, asked.boot.at, nowOf(deps))) return;
  await noteContest(tx, deps, install, { ...asked, actor: node.name ?? "", address: node.address });
}

/** Which boot the request is of. */
export function bootAsking(deps: ServiceDeps, { address, hardware }: BootRequest, install: InstallRecord): Asked {
  const { serialNumber = "", systemUuid = "" } = hardware;
  return bootOf(install, {
    address,
    identity: `${serialNumber} ${systemUuid}`.trim().toLowerCase(),
    binding: deps.tokenBinding ?? DEFAULT_BINDING,
    mayMove: install.state.name !== "deprovisioning",
    armedFor: deps.armedFor ?? ARMED_FOR,
    now: nowOf(deps),
    newId: randomUUID,
  });
}

/** Once an address: anybody on the boot network can ask as often as they like. */
async function noteContest(
  tx: Transaction,
  deps: ServiceDeps,
  { id, boot: before }: InstallRecord,
  { boot, actor, address }: Asked & { readonly actor: string; readonly address: string | null },
): Promise<void> {
  if (before !== null && before.others.length === boot.others.length) return;
  const addresses = [boot.address, ...boot.others].map((each) => each ?? "");
  const reason = `${addresses.join(" and ")} asked for the script of one boot; neither proves anything`;
  await recordChange(tx, storeOf(deps.stores, INSTALL_KIND), {
    id,
    type: "boot_contested",
    actor,
    address,
    reason,
    data: { addresses },
    set: { boot },
    touchesBasis: false,
  });
  tx.logWhenCommitted({ kind: INSTALL_KIND, id, addresses }, "a boot is contested", "warn");
}
