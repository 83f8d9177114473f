import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import type { CallContext } from "../../../capabilities/call.ts";
import type { BmcManager } from "../../../capabilities/rack/manager.ts";
import { bmcFailure } from "../../transport/bmc-failure.ts";
import { nameOf } from "../../transport/bmc-gateway.ts";
import { actionOffered } from "../action-offered.ts";
import type { RedfishClient } from "../client.ts";
import { linkAt, membersOf, type Resource, textAt } from "../resource.ts";
import { SERVICE_ROOT } from "../sessions.ts";

const RESET = "#Manager.Reset";
const RESET_TYPES = ["GracefulRestart", "ForceRestart"] as const;
const MOST_MANAGERS = 8;

export function createBmcManager(client: RedfishClient): BmcManager {
  return {
    async readRoot(target, call) {
      const { resource, certificateFingerprint } = await client.getOpenly(target, SERVICE_ROOT, call);
      const uuid = textAt(resource, "UUID")?.toLowerCase() ?? null;
      return { uuid, ...(certificateFingerprint !== undefined && { certificateFingerprint }) };
    },

    async readStart(target, call) {
      return textAt(await findBmc(client, target, call), "LastResetTime") ?? null;
    },

    async resetManager(target, call) {
      const manager = await findBmc(client, target, call);
      for (const ResetType of RESET_TYPES) {
        const path = actionOffered(manager, RESET, { name: "ResetType", value: ResetType });
        if (path === undefined) continue;
        await client.post(target, path, { ResetType }, call);
        return;
      }
      throw bmcFailure(
        "unsupported",
        target,
        `${nameOf(target)}: this BMC offers no restart of itself. Do it at the rack`,
      );
    },

    expectRestart: (target, until) => client.expectRestart(target, until),
  };
}

/** Beside the BMC there may be managers of parts of the device. */
async function findBmc(client: RedfishClient, target: BmcTarget, call: CallContext): Promise<Resource | undefined> {
  const { resource: root } = await client.get(target, SERVICE_ROOT, call);
  const link = linkAt(root, "Managers");
  const members = link === undefined ? [] : membersOf(await client.find(target, link, call)).slice(0, MOST_MANAGERS);
  let first: Resource | undefined;
  for (const { path } of members) {
    const manager = await client.find(target, path, call);
    if (manager === undefined) continue;
    if (members.length === 1 || textAt(manager, "ManagerType")?.toLowerCase() === "bmc") return manager;
    first ??= manager;
  }
  return first;
}
