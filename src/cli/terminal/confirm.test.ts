import type { ConnectRouter } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MachineService } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { Forge } from "../../../contract/forge/forge_pb.js";
import { CloudInitService } from "../../../contract/millwright/v1/cloud_init_pb.js";
import { ClusterService, ImageService } from "../../../contract/millwright/v1/cluster_pb.js";
import { FleetNodeService } from "../../../contract/millwright/v1/fleet_node_pb.js";
import { MachineLifecycleService } from "../../../contract/millwright/v1/machine_pb.js";
import { PlanCatalogService } from "../../../contract/millwright/v1/plan_pb.js";
import { RackService } from "../../../contract/millwright/v1/rack_pb.js";
import { TokenService } from "../../../contract/millwright/v1/token_pb.js";
import { type FakeRest, startFakeRest } from "../../../test/support/cli/fake-rest.ts";
import { noted, runAgainst } from "../../../test/support/cli/fake-terminal.ts";
import { type CommandDescription, describeCommands } from "../describe.ts";

/** What cannot be taken back, and what a person types to agree. */
const BY_RPC = [
  ["plan delete x", "yes"],
  ["cluster delete x", "yes"],
  ["image delete x", "yes"],
  ["cloud-init delete x", "yes"],
  ["token revoke x", "yes"],
  ["machine retire x", "yes"],
  ["power-shelf delete x", "yes"],
  ["power-shelf force-delete x", "yes"],
  ["rack-firmware delete x", "yes"],
  ["rack delete x", "yes"],
  ["rack force-delete x", "yes"],
  ["rack profile delete x", "yes"],
  ["switch delete x", "yes"],
  ["switch force-delete x", "yes"],
  ["expected-switch delete 02:00:5e:10:00:01", "yes"],
  ["expected-rack delete x", "yes"],
  ["expected-power-shelf delete 02:00:5e:10:00:01", "yes"],
  ["expected-power-shelf delete-all", "yes"],
  ["fleet decommission x --mode soft_reset", "yes"],
  ["fleet retire x", "yes"],
] as const;
const BY_REST = [
  ["group delete x", "yes"],
  ["workflow delete x", "yes"],
  ["node retire x", "yes"],
  ["node deprovision x", "x"],
] as const;

describe("what cannot be undone asks first", () => {
  test.each(BY_RPC)("`%s` does nothing unless %s is typed, or --yes was given", async (line, answer) => {
    const done: string[] = [];
    const routes = (router: ConnectRouter) => serveRemovals(router, done);
    const run = async (words: string, options = {}) => {
      done.length = 0;
      const { code, err } = await runAgainst(routes, words, options);
      return { code, err, done: done.length };
    };
    await expectToAsk(run, line, answer);
  });

  let rest: FakeRest;
  beforeEach(async () => {
    rest = await startFakeRest();
    const one = { success: true, data: { id: "x", name: "x", state: "active", effective_workflow_id: null } };
    rest.answers.set("GET /api/v1/groups", { success: true, data: [one.data], total: 1 });
    for (const call of ["DELETE /api/v1/groups/x", "DELETE /api/v1/workflows/x", "PATCH /api/v1/nodes/x/state"])
      rest.answers.set(call, one);
  });
  afterEach(() => rest.close());

  test.each(BY_REST)("`%s` does nothing unless %s is typed, or --yes was given", async (line, answer) => {
    const run = async (words: string, options = {}) => {
      rest.calls.length = 0;
      const { code, err } = await rest.run(words, options);
      return { code, err, done: rest.calls.filter(({ method }) => method !== "GET").length };
    };
    await expectToAsk(run, line, answer);
  });
});

interface Ran {
  readonly code: number;
  readonly err: string;
  /** How many changes were asked of the server. */
  readonly done: number;
}

async function expectToAsk(
  run: (line: string, options?: { readonly isTTY: boolean; readonly answer: string }) => Promise<Ran>,
  line: string,
  answer: string,
): Promise<void> {
  const nobody = await run(line);
  expect(nobody).toMatchObject({ code: 2, done: 0 });
  expect(nobody.err).toContain("hint: --yes");
  const declined = await run(line, { isTTY: true, answer: "no" });
  expect(declined).toMatchObject({ code: 2, done: 0 });
  expect(declined.err).toContain(`Type ${answer}: `);
  expect(await run(line, { isTTY: true, answer })).toMatchObject({ code: 0, done: 1 });
  expect(await run(`${line} --yes`)).toMatchObject({ code: 0, done: 1 });
}

function serveRemovals(router: ConnectRouter, done: string[]): void {
  const removed = (what: string) => () => noted(done, what);
  router.service(PlanCatalogService, { deletePlan: removed("plan") });
  router.service(ClusterService, { deleteCluster: removed("cluster") });
  router.service(ImageService, { deleteImage: removed("image") });
  router.service(CloudInitService, { deleteCloudInit: removed("cloud-init") });
  router.service(TokenService, { revokeToken: removed("token") });
  router.service(MachineService, { getMachine: ({ machineId }) => ({ machineId }) });
  router.service(MachineLifecycleService, {
    retireMachine: ({ machineId }) => ({ ...noted(done, machineId), machine: { machineId } }),
  });
  router.service(Forge, {
    deletePowerShelf: removed("shelf"),
    adminForceDeletePowerShelf: removed("shelf"),
    deleteRackFirmware: removed("rack firmware"),
    deleteExpectedPowerShelf: removed("expected"),
    deleteAllExpectedPowerShelves: removed("all expected"),
    deleteSwitch: removed("switch"),
    adminForceDeleteSwitch: removed("switch"),
    deleteExpectedSwitch: removed("expected"),
    deleteExpectedRack: removed("expected"),
  });
  router.service(FleetNodeService, { decommissionNode: removed("node"), retireNode: removed("node") });
  router.service(RackService, {
    deleteRack: removed("rack"),
    forceDeleteRack: removed("rack"),
    deleteRackProfile: removed("profile"),
  });
}

/** Words of commands that destroy something; `replace-all` asks only where it drops entries, and is tested with them. */
const DESTROYS = /^(force-)?(delete|revoke|retire|deprovision|erase|wipe|forget|purge|destroy|decommission)(-.*)?$/;

test("a command that deletes, revokes, retires or erases is among those proven to ask", () => {
  const words = ({ name, commands }: CommandDescription, path: readonly string[] = []): string[] =>
    commands.length === 0 ? [[...path, name].join(" ")] : commands.flatMap((child) => words(child, [...path, name]));
  const destroying = words(describeCommands())
    .map((path) => path.replace(/^millwright /, ""))
    .filter((path) => DESTROYS.test(path.split(" ").at(-1) ?? ""));
  const proven = [...BY_RPC, ...BY_REST].map(([line]) => {
    const path = line.split(" ");
    return path.slice(0, path.findIndex((word) => DESTROYS.test(word)) + 1).join(" ");
  });
  expect(destroying.toSorted()).toEqual(proven.toSorted());
});
