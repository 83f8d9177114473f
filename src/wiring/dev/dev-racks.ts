import { z } from "zod";
import type { Config } from "../../config.ts";
import { AppError } from "../../kernel/errors.ts";
import type { Caller } from "../../services/call/caller.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { getRackProfile, type ProfilePart, putProfile } from "../../services/catalog/rack-profiles.ts";
import { addExpectedRack } from "../../services/expected-rack/expected-racks.ts";
import { addExpectedSwitch } from "../../services/expected-switch/expected-switches.ts";
import { createRackFirmware } from "../../services/rack-firmware/rack-firmware.ts";

const catalogueSchema = z.array(z.object({ hardware_type: z.string(), config: z.record(z.string(), z.unknown()) }));

const switchesSchema = z.array(
  z.object({
    bmc_mac_address: z.string(),
    bmc_username: z.string(),
    bmc_password: z.string(),
    switch_serial_number: z.string(),
    bmc_ip_address: z.string(),
    rack_id: z.string(),
    nvos_username: z.string(),
    nvos_password: z.string(),
    nvos_mac_addresses: z.array(z.string()),
    metadata: z.object({ name: z.string() }),
  }),
);

const partSchema = z.object({
  name: z.string().optional(),
  count: z.number(),
  vendor: z.string().optional(),
  watts: z.number().optional(),
});
const profilesSchema = z.array(
  z.object({
    name: z.string(),
    hardware_type: z.string(),
    topology: z.string(),
    class: z.enum(["dev", "prod"]),
    compute: partSchema,
    switches: partSchema,
    power_shelves: partSchema,
  }),
);
const racksSchema = z.array(
  z.object({ rack_id: z.string(), rack_profile_id: z.string(), metadata: z.object({ name: z.string() }) }),
);

/** What the files of a catalogue that asks for no token are fetched with. */
const NO_TOKEN = "NOAUTH";

const rackManagerSchema = z.object({ url: z.string(), api: z.enum(["d", "h"]) });

/** With the rack manager that the simulated site has, unless another one is configured. */
export async function withSimulatedRackManager(config: Config, controlUrl: string): Promise<Config> {
  const { rackManager, sim } = config;
  if (sim.rackManager === null || rackManager.url !== null) return config;
  const simulated = await read(controlUrl, "/rack-manager", rackManagerSchema);
  return simulated === undefined ? config : { ...config, rackManager: { ...rackManager, ...simulated } };
}

/** What a simulated site has for switches, with both accounts of each; those on record already stay as they are. */
export async function expectSimulatedSwitches(deps: ServiceDeps, caller: Caller, controlUrl: string): Promise<number> {
  const rows = (await read(controlUrl, "/inventory/switches", switchesSchema)) ?? [];
  for (const row of rows)
    await unlessThere(
      addExpectedSwitch(deps, caller, {
        bmcMac: row.bmc_mac_address,
        bmcUsername: row.bmc_username,
        bmcPassword: row.bmc_password,
        serial: row.switch_serial_number,
        bmcEndpoint: row.bmc_ip_address,
        rackId: row.rack_id,
        metadata: { name: row.metadata.name, description: "", labels: {} },
        nvosMacs: row.nvos_mac_addresses,
        nvosUsername: row.nvos_username,
        nvosPassword: row.nvos_password,
      }),
    );
  return rows.length;
}

/** What a simulated site says of its racks: what each kind consists of, and which racks there are. */
export async function expectSimulatedRacks(deps: ServiceDeps, caller: Caller, controlUrl: string): Promise<number> {
  for (const profile of (await read(controlUrl, "/inventory/profiles", profilesSchema)) ?? []) {
    if (await getRackProfile(deps, profile.name)) continue;
    await putProfile(deps, caller, {
      name: profile.name,
      hardwareType: profile.hardware_type,
      topology: profile.topology,
      class: profile.class,
      compute: partOf(profile.compute),
      switches: partOf(profile.switches),
      powerShelves: partOf(profile.power_shelves),
    });
  }
  const racks = (await read(controlUrl, "/inventory/racks", racksSchema)) ?? [];
  for (const { rack_id: rackId, rack_profile_id: profileId, metadata } of racks)
    await unlessThere(
      addExpectedRack(deps, caller, { rackId, profileId, metadata: { ...metadata, description: "", labels: {} } }),
    );
  return racks.length;
}

const partOf = ({ name, count, vendor, watts }: z.infer<typeof partSchema>): ProfilePart => ({
  name: name ?? null,
  count,
  vendor: vendor ?? null,
  watts: watts ?? null,
  slotIds: [],
});
/** The firmware that a simulated site has for its racks. The first record of each kind, which its devices came with, becomes the default. */
export async function recordSimulatedFirmware(deps: ServiceDeps, caller: Caller, controlUrl: string): Promise<void> {
  for (const { hardware_type, config } of (await read(controlUrl, "/firmware/catalogue", catalogueSchema)) ?? []) {
    const record = { configJson: JSON.stringify(config), token: NO_TOKEN, hardwareType: hardware_type };
    await unlessThere(createRackFirmware(deps, caller, record));
  }
}

/** Undefined where the simulator does not know it. */
async function read<T>(controlUrl: string, path: string, schema: z.ZodType<T>): Promise<T | undefined> {
  const answer = await fetch(new URL(path, controlUrl));
  return answer.ok ? schema.parse(await answer.json()) : undefined;
}

async function unlessThere(creating: Promise<unknown>): Promise<void> {
  await creating.catch((error: unknown) => {
    if (!(error instanceof AppError) || error.kind !== "already_exists") throw error;
  });
}
