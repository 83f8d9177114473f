import type { DeviceInventory } from "../../capabilities/inventory.ts";
import { need } from "../../capabilities/provider.ts";
import type { Cause } from "../../kernel/causes.ts";
import { move } from "../../kernel/effects.ts";
import { portMacOf } from "../../kernel/ids.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { type Handlers, happened, nothingToDo, waitFor } from "../../kernel/outcome.ts";
import { seconds } from "../../kernel/time/duration.ts";
import {
  confirmIdentity,
  identityFacts,
  type MonitorContext,
  observeDevice,
  wasJustObserved,
} from "../device/monitoring.ts";
import { expectedSwitchLifecycle } from "../expected-switch/lifecycle.ts";
import type { switchLifecycle } from "./lifecycle.ts";
import type { Switch } from "./switch.ts";

const NOUN = "switch";
const LOOK_AGAIN = seconds(10);

/** What each state does. A handler says what happened; the table says where that leads. */
export const switchHandlers: Handlers<typeof switchLifecycle, Switch, MonitorContext> = {
  /** Nothing is believed of a switch before it is known which expected switch, and which operating system, it is. */
  async initializing(device, { provider, call, target }) {
    const wrong = findWrong(device);
    if (wrong) return happened("identity_wrong", wrong);
    const can = need(provider, ["inventory"]);
    const bmc = await target();
    const inventory = await can.inventory.readInventory(bmc, call);
    confirmIdentity(device, NOUN, bmc, inventory.identity);
    const facts = { ...identityFacts(inventory), ...placeOf(device, inventory) };
    if (!hasInterface(device, inventory)) {
      const macs = device.nvosMacs.join(", ");
      const reason = `the BMC at ${bmc.address} reports no interface with an NVOS MAC address of the expected switch (${macs}); correct the expected switch, or set the address of its operating system (millwright expected-switch set-nvos-address)`;
      return waitFor(reason, LOOK_AGAIN, { facts });
    }
    return happened("interface_associated", { facts });
  },

  /** Credentials are proven by a signed-in read; the first health reading registers the switch for monitoring. */
  async configuring(device, context) {
    return happened("password_rotated", { facts: await observe(device, context) });
  },

  /** Whose serial it is, was compared by the read. */
  async validating(device, context) {
    return happened("validated", wasJustRead(device, context) ? {} : { facts: await observe(device, context) });
  },

  async bom_validating({ facts, labels }) {
    const missing = [
      ...(facts.slotNumber === null ? ["slot number"] : []),
      ...(facts.trayIndex === null && indexLabel(labels) === null ? ["tray index"] : []),
    ];
    return happened("bom_validated", {
      ...(missing.length > 0 && {
        message: `the BMC does not report: ${missing.join(", ")}; the fabric of a rack needs the tray index, also as label tray_index`,
      }),
    });
  },

  /** Monitoring: what changed outside is noticed here. A switch that does not answer stays ready, and says so. */
  async ready(device, context) {
    if (wasJustObserved(device, context.clock)) return nothingToDo(context.monitorEvery);
    return nothingToDo(context.monitorEvery, { facts: await observe(device, context) });
  },

  /** An errored switch is still watched, so that the operator sees what it does. */
  async error(device, context) {
    if (findWrong(device)) return nothingToDo(context.monitorEvery);
    return nothingToDo(context.monitorEvery, { facts: await observe(device, context) });
  },

  /** The runs of its rack work on it; nothing is read that they would wait for. */
  async reprovisioning({ state: { step, rack } }, { monitorEvery }) {
    const awaited = step === "waiting_for_nmxc_configure" ? "the fabric" : "the firmware upgrade";
    return waitFor(`waiting for ${awaited} of rack ${rack ?? "unknown"}`, monitorEvery);
  },

  /** Its expected row is detached in the same commit, so that the explorer does not bring the switch back. */
  async deleting({ expectedId }) {
    return happened("removed", {
      effects: expectedId === null ? [] : [move(expectedSwitchLifecycle, expectedId, "switch_deleted")],
    });
  },
};

/** Why it is not known which switch this is. */
function findWrong({
  expectedId,
  nvosMacs,
  nvosMacTakenBy,
}: Switch): { readonly message: string; readonly cause: Cause } | undefined {
  const cause: Cause = { code: "wrong_identity", facts: { at: "bmc" } };
  if (expectedId === null)
    return { message: "no expected switch is linked to it: add one with the MAC address of its BMC", cause };
  if (nvosMacs.length === 0)
    return { message: "its expected switch has no nvos_mac_addresses: update the expected switch", cause };
  if (nvosMacTakenBy === null) return undefined;
  return {
    message: `an NVOS MAC address of it belongs to switch ${nvosMacTakenBy}: correct one of the expected switches`,
    cause,
  };
}

const hasInterface = (device: Switch, { interfaces = [] }: DeviceInventory): boolean =>
  device.givenNvosAddress !== null || interfaces.some(({ mac }) => isOwn(device, mac));

const isOwn = ({ nvosMacs }: Switch, mac: string): boolean => nvosMacs.includes(portMacOf(mac) ?? mac.toLowerCase());

/**
 * Where it stands in the rack and where its operating system is. A label helps where its BMC does not report the index. An address that
 * the BMC has ceased to report is remembered until the expected switch gives one.
 */
function placeOf(device: Switch, { place, interfaces = [] }: DeviceInventory): JsonObject {
  const own = interfaces.find(({ mac, address }) => address !== null && isOwn(device, mac));
  const { facts, labels, givenNvosAddress } = device;
  return {
    slotNumber: place?.slot ?? facts.slotNumber,
    trayIndex: place?.trayIndex ?? indexLabel(labels) ?? facts.trayIndex,
    reportedNvosAddress: own?.address ?? (givenNvosAddress === null ? facts.reportedNvosAddress : null),
  };
}

function indexLabel(labels: Switch["labels"]): number | null {
  const text = labels["tray_index"];
  return text != null && /^\d{1,4}$/.test(text) ? Number(text) : null;
}

const wasJustRead = ({ facts: { observedAt } }: Switch, { clock }: MonitorContext): boolean =>
  observedAt !== null && clock.now().getTime() - Date.parse(observedAt) < LOOK_AGAIN;

async function observe(device: Switch, context: MonitorContext): Promise<JsonObject> {
  const seen = await observeDevice(device, context, NOUN, (inventory) => placeOf(device, inventory));
  const { firmware } = context.provider.can;
  if (!firmware) return seen;
  const installed = await firmware.readInstalled(await context.target(), context.call);
  const versions = installed.flatMap(({ component, version }) => (version === null ? [] : [[component, version]]));
  return { ...seen, firmware: Object.fromEntries(versions) as JsonObject };
}
