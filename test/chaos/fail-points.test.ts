import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { JournalRow } from "../../src/store/lifecycle/journal.ts";
import { listFailPoints } from "../support/fail-points.ts";
import {
  expectStop,
  type KilledServers,
  letLeasesEnd,
  openKilledServers,
} from "../support/processes/killed-servers.ts";
import { ROOT } from "../support/processes/process-bench.ts";
import { expectInventory, type ServerProcess } from "../support/processes/server-process.ts";
import { type SimulatorProcess, startSimulatorProcess } from "../support/processes/simulator-process.ts";
import { endsOf, isDone, journalOf, untilShelves } from "../support/shelf-records.ts";

/**
 * Kill -9 at every fail point while a shelf is powered off: the next server must finish the work, and the device must not
 * hear the command twice.
 *
 * `slow` devices take a second to obey, so that the first look at the shelf in maintenance leaves it waiting; `instant` ones
 * have obeyed when they are read back, so that the first pass completes the operation.
 */
type Device = "slow" | "instant";
interface Kill {
  readonly at: string;
  readonly device: Device;
}

const takingItUp: Kill = { at: ":power_shelf:ready", device: "instant" };
const waiting: Kill = { at: ":power_shelf:maintenance", device: "slow" };
const waitingAgain: Kill = { at: ":power_shelf:maintenance@2", device: "slow" };
const completing: Kill = { at: ":power_shelf:maintenance", device: "instant" };

/** Every fail point in the sources has its row here, or is off this way and has it below; the first test sees to it. */
const KILLS: Readonly<Record<string, readonly Kill[]>> = {
  "requests:recorded": [{ at: ":power_shelf", device: "instant" }],
  "work:claimed": [{ at: ":power_shelf", device: "instant" }],
  "work:released": [{ at: ":power_shelf", device: "instant" }],
  "claims:wished": [{ at: ":power_shelf", device: "instant" }],
  "claims:released": [{ at: ":power_shelf", device: "instant" }],
  "controller:claimed": [
    { at: ":power_shelf", device: "instant" },
    { at: ":power_shelf@2", device: "slow" },
  ],
  "controller:loaded": [takingItUp, waiting, waitingAgain],
  "controller:handled": [takingItUp, waiting, completing],
  "committer:before": [takingItUp, waiting, completing],
  "committer:inside": [takingItUp, waiting, completing],
  "committer:after": [takingItUp, waiting, completing],
  "transitions:locked": [takingItUp, waiting, completing],
  "transitions:journaled": [takingItUp, waiting, completing],
};
/** Fail points that no request for maintenance passes, by the test that dies at each of them. */
const PROVEN_IN: Readonly<Record<string, readonly string[]>> = {
  "test/chaos/writers.test.ts": [
    "bmc-credentials:pin-forgotten",
    "bmc-credentials:removed",
    "changes:written",
    "claims:granted",
    "clusters:replaced",
    "cloud-init:written",
    "clusters:written",
    "create:inserted",
    "credentials:bound",
    "device-groups:removed",
    "device-groups:written",
    "fleet-agents:dismissed",
    "fleet-agents:replaced",
    "fleet-observations:written",
    "fleet-profiles:removed",
    "fleet-profiles:written",
    "fleet-roce:removed",
    "fleet-roce:written",
    "fleet-site-watches:claimed",
    "fleet-site-watches:noted",
    "fleet-site-watches:released",
    "fleet-sites:changed",
    "fleet-sites:removed",
    "fleet-sites:written",
    "fleet-tasks:forgotten",
    "health-reports:forgotten",
    "health-reports:put",
    "health-reports:removed",
    "idempotency:remembered",
    "images:written",
    "install-orders:placed",
    "install-workflows:retired",
    "install-workflows:written",
    "journal:appended",
    "journal:forgotten",
    "journal-seals:removals-signed",
    "journal-seals:sealed",
    "machine-credentials:moved",
    "machine-identities:written",
    "plans:written",
    "rack-profiles:removed",
    "rack-profiles:written",
    "refused-calls:counted",
    "refused-calls:forgotten",
    "replicas:noted",
    "restore:beat",
    "restore:begun",
    "restore:declared",
    "restore:identity-written",
    "restore:parked",
    "restore:parked-all",
    "restore:released",
    "restore:settled",
    "restore:witnesses-forgotten",
    "run-documents:forgotten",
    "script-texts:forgotten",
    "script-texts:kept",
    "saved-views:deleted",
    "saved-views:written",
    "secret-keys:current",
    "secrets:encrypted-again",
    "secrets:put",
    "secrets:removed",
    "sessions:created",
    "sessions:displaced",
    "sessions:ended",
    "sessions:forgotten",
    "sessions:forgotten-of-credential",
    "sign-in-ledger:lifted",
    "sign-in-ledger:noted",
    "strange-boots:written",
    "tokens:bound",
    "tokens:created",
    "tokens:name-given-up",
    "tokens:revoked",
    "withdrawals:written",
  ],
  "test/chaos/run-kills.test.ts": ["run-logs:appended"],
  "test/chaos/upload-takeover.test.ts": ["stream:chunk-sent"],
  "test/chaos/machine-conditions.test.ts": ["condition-checks:claimed", "condition-checks:released"],
  "test/chaos/device-events.test.ts": ["event-streams:claimed", "event-streams:released"],
  "test/integration/store/migrate.test.ts": ["migrate:applied"],
};
/** Where the caller's own transaction dies with the server: then there is no request, and the caller asks again. */
const BEFORE_THE_REQUEST_IS_THERE = new Set(["requests:recorded"]);

const cases = Object.entries(KILLS).flatMap(([name, kills]) =>
  kills.map(({ at, device }) => ({ name, device, failPoint: `${name}${at}` })),
);
/** Leases run for 22 s. They are put forward instead of waited for, unless the long run is wanted. */
const LONG = process.env.CHAOS_LONG === "1";

let servers: KilledServers;
const simulators = {} as Record<Device, SimulatorProcess>;
/** Shelves that no test has had yet: their ids with us and at the simulator. */
const unused: Record<Device, { id: string; deviceId: string }[]> = { slow: [], instant: [] };

beforeAll(async () => {
  servers = await openKilledServers();
  const { bench, prepared, token } = servers;
  simulators.slow = await startSimulatorProcess(bench, { name: "slow", site: "racks=2", seed: 1, speed: 5 });
  simulators.instant = await startSimulatorProcess(bench, { name: "instant", site: "racks=4", seed: 2, speed: 1e6 });
  const server = await servers.startOnPrepared();
  const inventories = { slow: await simulators.slow.inventory(), instant: await simulators.instant.inventory() };
  const rows = [...inventories.slow, ...inventories.instant];
  await expectInventory(server, token, rows);
  const ready = await untilShelves(
    prepared,
    (all) => all.length === rows.length && all.every(({ state }) => state.name === "ready"),
    { what: "all shelves are ready", transcript: server.process.transcript },
  );
  server.process.signal("SIGTERM");
  await server.process.exited;
  await prepared.close();
  const idOf = new Map(ready.map(({ bmc, id }) => [bmc.mac, id]));
  for (const device of ["slow", "instant"] as const)
    unused[device] = inventories[device].map(({ bmc_mac_address, metadata }) => ({
      id: idOf.get(bmc_mac_address.toLowerCase()) ?? "",
      deviceId: metadata.name,
    }));
}, 90_000);

afterAll(() => servers.close());

test("every fail point in the sources has its kills here, and every kill its fail point", () => {
  expect([...Object.keys(KILLS), ...Object.values(PROVEN_IN).flat()].sort()).toEqual(listFailPoints());
  for (const [file, names] of Object.entries(PROVEN_IN)) {
    const source = readFileSync(join(ROOT, file), "utf8");
    for (const name of names) expect(source, `${file} has ${name}`).toContain(name);
  }
});

describe("a server killed at", { concurrent: true, timeout: LONG ? 240_000 : 120_000 }, () => {
  test.for(cases.map(({ failPoint, device, name }) => [failPoint, device, name] as const))(
    "%s (%s device) leaves nothing lost, doubled or half done",
    async ([failPoint, device, name], { onTestFinished }) => {
      const shelf = unused[device].shift();
      if (!shelf) throw new Error(`there is no ${device} shelf left`);
      const { database, kill, succeed } = await servers.openSite(onTestFinished);

      await kill(failPoint, (victim) => askForPowerOff(victim, shelf.id));
      const requests = requestsIn(await journalOf(database, shelf.id));
      expect(requests).toHaveLength(BEFORE_THE_REQUEST_IS_THERE.has(name) ? 0 : 1);
      if (!LONG) await letLeasesEnd(database);

      const successor = await succeed();
      if (requests.length === 0) await askForPowerOff(successor, shelf.id);
      await untilShelves(database, (all) => all.some((one) => one.id === shelf.id && isDone(one, "off")), {
        what: "the shelf is ready again, and off",
        transcript: successor.process.transcript,
      });
      await expectStop(successor);

      expectOneCompletedRequest(await journalOf(database, shelf.id));
      const { power, effects } = await simulators[device].device(shelf.deviceId);
      expect(power).toBe("off");
      expect(effects).toMatchObject({ power_off_commands: 1, power_on_commands: 0, power_changes: 1 });
      expect(await database.db.query("select * from claims")).toEqual([]);
    },
  );
});

const askForPowerOff = (server: ServerProcess, id: string) =>
  server.ask(
    "forge.Forge/SetPowerShelfMaintenance",
    { powerShelfIds: [{ id }], operation: "POWER_SHELF_MAINTENANCE_OPERATION_POWER_OFF" },
    servers.token,
  );

const requestsIn = (journal: readonly JournalRow[]) => journal.filter(({ type }) => type === "requested");

/** From the request to its end the journal has every version once, and the end once. */
function expectOneCompletedRequest(journal: readonly JournalRow[]): void {
  const [request] = requestsIn(journal);
  if (!request) throw new Error("no request was recorded");
  expect(endsOf(journal, String(request.data.request_id))).toEqual(["completed"]);
  const end = journal.findIndex(({ data }) => data.ended !== undefined);
  const between = journal.slice(journal.indexOf(request), end + 1);
  expect(between.map(({ version }) => version)).toEqual(between.map((_, index) => request.version + index));
  const moves = between.filter(({ type }) => type === "transition").map(({ from, to }) => `${from} → ${to}`);
  expect(moves).toEqual(["ready → maintenance", "maintenance → ready"]);
}
