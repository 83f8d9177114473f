import { move } from "../../kernel/effects.ts";
import { AppError } from "../../kernel/errors.ts";
import { parsePortMac, parseSwitchId } from "../../kernel/ids.ts";
import { switchLifecycle } from "../../lifecycles/switch/lifecycle.ts";
import { nvosPlaceOf } from "../../lifecycles/switch/nvos-place.ts";
import type { Switch } from "../../lifecycles/switch/switch.ts";
import { putOsCredentials } from "../../store/device/bmc-credentials.ts";
import { expectedSwitchListing } from "../../store/expected-switch/expected-switch-list.ts";
import { type ExpectedSwitchRecord, listExpectedSwitches } from "../../store/expected-switch/expected-switches.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { findSwitchesOfBmcs, listSwitches } from "../../store/switch/switches.ts";
import { checkRequiredText } from "../call/required-text.ts";
import { expectedServices } from "../expected-device/expected-devices.ts";
import type { ExpectedColumns, ExpectedInput } from "../expected-device/input.ts";

export type { ExpectedSwitchRecord } from "../../store/expected-switch/expected-switches.ts";

export interface ExpectedSwitchInput extends ExpectedInput {
  readonly nvosMacs: readonly string[];
  readonly nvosUsername: string | undefined;
  /** Undefined on an update keeps the one on record. */
  readonly nvosPassword: string | undefined;
}

export const {
  add: addExpectedSwitch,
  update: updateExpectedSwitch,
  remove: deleteExpectedSwitch,
  removeAll: deleteAllExpectedSwitches,
  replaceAll: replaceAllExpectedSwitches,
  get: getExpectedSwitch,
  listAll: listAllExpectedSwitches,
  page: pageExpectedSwitches,
} = expectedServices<ExpectedSwitchRecord, ExpectedSwitchInput>({
  kind: "expected_switch",
  device: "switch",
  nouns: { row: "expected switch", device: "switch", devices: "switches" },
  command: "expected-switch",
  fields: { id: "expected_switch_id", serial: "switch_serial_number", list: "expected_switches" },
  list: listExpectedSwitches,
  listing: expectedSwitchListing,
  linkField: "switch_id",
  parseDeviceId: parseSwitchId,
  findDevicesOfBmcs: findSwitchesOfBmcs,
  listDevices: (db, ids) => listSwitches(db, { ids }),
  ownColumns({ nvosMacs, nvosUsername, nvosPassword }, at) {
    if (nvosUsername !== undefined) checkRequiredText(nvosUsername, at("nvos_username"));
    if (nvosPassword !== undefined) checkRequiredText(nvosPassword, at("nvos_password"));
    if (nvosPassword !== undefined && nvosUsername === undefined) {
      const field = at("nvos_username");
      throw new AppError("invalid_argument", `${field}: is required with nvos_password`, { field });
    }
    const macs = nvosMacs.map((mac, index) => parsePortMac(mac, at(`nvos_mac_addresses[${index}]`)));
    return { nvos_macs: [...new Set(macs)], nvos_username: nvosUsername ?? null };
  },
  ownOf: ({ nvosMacs, nvosUsername }) => ({ nvos_macs: nvosMacs, nvos_username: nvosUsername }),
  withOwnSecrets: async (input, store) => ({
    ...input,
    nvosPassword: await store(input.nvosPassword, "nvos_password"),
  }),
  async putOwnSecrets(tx, deps, { mac, prefix, input: { nvosUsername, nvosPassword }, row: wanted }, row) {
    if (nvosUsername === undefined || nvosUsername === "") return;
    if (nvosPassword !== undefined) {
      const place = nvosPlaceOf(row?.nvosAddress ?? null, await bmcAfter(tx, wanted, row));
      const account = { username: nvosUsername, password: nvosPassword };
      return putOsCredentials(tx, deps.secrets, { mac, place, ...account });
    }
    if (row?.nvosUsername === nvosUsername) return;
    const field = `${prefix}nvos_password`;
    throw new AppError("invalid_argument", `${field}: is required with a new nvos_username`, { field });
  },
  whenUpdated: ({ existing }) =>
    existing === null ? [] : [move(switchLifecycle, existing.id, "expected_updated", { ifPossible: true })],
  ownPlace: ({ nvos_macs }) => ({ nvos_macs: nvos_macs ?? [] }),
});

/** How the BMC of a switch is spoken to once its row is as it is to be. */
async function bmcAfter(
  tx: Transaction,
  { bmc_address, bmc_port }: Pick<ExpectedColumns, "bmc_address" | "bmc_port">,
  row: ExpectedSwitchRecord | undefined,
): Promise<Pick<Switch["bmc"], "port" | "scheme" | "trust">> {
  const [device] = row?.existing ? await listSwitches(tx, { ids: [row.existing.id] }) : [];
  const { port = 443, scheme = "https", trust = "pin" } = device?.bmc ?? {};
  return { port: bmc_address === null ? port : (bmc_port ?? 443), scheme, trust };
}
