import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { MachineService } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { MachineLifecycleService } from "../../../../contract/millwright/v1/machine_pb.js";
import { RackService } from "../../../../contract/millwright/v1/rack_pb.js";
import { createFakeShelves } from "../../../../test/support/cli/fake-shelves.ts";
import { createFakeTerminal, noted, runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

/** Racks of which rack-2 is refused, whatever is asked of it. */
function site(ids: readonly string[] = ["rack-1", "rack-2", "rack-3"]) {
  const asked: { readonly rackId: string }[] = [];
  const filters: string[] = [];
  const answer = (request: { readonly rackId: string }) => {
    if (request.rackId === "rack-2") throw new ConnectError("rack rack-2 is discovering", Code.FailedPrecondition);
    return noted(asked, request);
  };
  const requested = (request: { readonly rackId: string }) => ({
    ...answer(request),
    requestId: `q-${request.rackId}`,
  });
  const routes = (router: ConnectRouter) =>
    router.service(RackService, {
      listRacks: ({ filter }) => ({ ...noted(filters, filter), racks: ids.map((id) => ({ id })) }),
      startRackMaintenance: requested,
      terminateRackMaintenance: answer,
      reprovisionRack: requested,
      clearRackError: answer,
      previewRackMaintenance: ({ rackId }) => ({ rackId }),
      getRack: ({ id }) => ({
        rack: { id, state: "ready", stateText: "Ready", lastRequests: [{ id: `q-${id}`, outcome: "completed" }] },
      }),
    });
  return { asked, filters, routes };
}

test.each([
  "rack reprovision rack-1 rack-2 rack-3 rack-1",
  "rack clear-error rack-1 rack-2 rack-3",
  "rack maintenance terminate rack-1 rack-2 rack-3",
  "rack maintenance terminate --rack rack-1,rack-2 rack-3",
  "rack maintenance start --rack rack-1 rack-2 rack-3",
])("`%s` asks each rack once; one that is refused keeps no other from it, and decides the exit code", async (line) => {
  const { asked, routes } = site();
  const { code, out, err } = await runAgainst(routes, `${line} -o json`);
  expect(code).toBe(4);
  expect(asked.map(({ rackId }) => rackId)).toEqual(["rack-1", "rack-3"]);
  expect(JSON.parse(out)).toMatchObject([
    { id: "rack-1", ok: true },
    { id: "rack-2", ok: false, exit_code: 4, message: "rack rack-2 is discovering" },
    { id: "rack-3", ok: true },
  ]);
  expect(err).toContain("1 of 3 failed");
});

test("a filter chooses racks, and asks before anything is done", async () => {
  const { asked, filters, routes } = site();
  const words = ["rack", "reprovision", "--filter", "labels.row=7"];
  const refused = await runAgainst(routes, words);
  expect(refused).toMatchObject({
    code: 2,
    err: expect.stringContaining("reprovision 3 racks (rack-1, rack-2, rack-3)"),
  });
  expect(asked).toEqual([]);
  await runAgainst(routes, [...words, "--yes"]);
  expect(asked).toHaveLength(2);
  expect(filters).toEqual(["labels.row=7", "labels.row=7"]);
});

test.each([
  ["neither ids nor a filter", "rack reprovision", "either ids or --filter"],
  ["both", "rack reprovision rack-1 --filter state=ready", "either ids or --filter"],
  ["no rack for a maintenance", "rack maintenance start", "either ids or --filter"],
  ["devices and several racks", "rack maintenance start --rack rack-1 rack-2 --machine-ids m1", "devices of one rack"],
])("%s is refused before anything is sent", async (_, line, says) => {
  const { asked, routes } = site();
  expect(await runAgainst(routes, line)).toMatchObject({ code: 2, err: expect.stringContaining(says) });
  expect(asked).toEqual([]);
});

test("a filter that no rack matches does nothing", async () => {
  const { routes } = site([]);
  const { code, err } = await runAgainst(routes, "rack clear-error --filter state=error --yes");
  expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining("no rack matches --filter") });
});

test("--wait requests all of them first, and then follows each to its end", async () => {
  const events = createFakeShelves();
  const { asked, routes } = site();
  const terminal = createFakeTerminal({});
  const running = runAgainst(
    (router) => {
      events.routes(router);
      routes(router);
    },
    "rack maintenance start --rack rack-1 rack-3 --wait -o csv",
    { terminal },
  );
  const { code, out } = await running;
  expect(asked.map(({ rackId }) => rackId)).toEqual(["rack-1", "rack-3"]);
  expect({ code, rows: out.match(/^rack-\d,\w+/gm) }).toEqual({ code: 0, rows: ["rack-1,ok", "rack-3,ok"] });
});

test("--dry-run of several racks previews each, and asks nothing of them", async () => {
  const { asked, routes } = site();
  const { out } = await runAgainst(routes, "rack maintenance start --filter labels.row=7 --dry-run -o json");
  expect(JSON.parse(out)).toMatchObject([{ rack_id: "rack-1" }, { rack_id: "rack-2" }, { rack_id: "rack-3" }]);
  expect(asked).toEqual([]);
});

test("machines are reprovisioned each by a request of its own", async () => {
  const asked: unknown[] = [];
  const routes = (router: ConnectRouter) => {
    router.service(MachineService, {
      listMachines: () => ({ machines: [{ machineId: "m-1" }, { machineId: "m-2" }] }),
    });
    router.service(MachineLifecycleService, {
      reprovisionMachine: (request) => ({ ...noted(asked, request), requestId: "q" }),
    });
  };
  const { code, out } = await runAgainst(routes, "machine reprovision --filter rack=rack-1 --yes --reset -o csv");
  expect({ code, rows: out.match(/^m-\d,\w+/gm) }).toEqual({ code: 0, rows: ["m-1,ok", "m-2,ok"] });
  expect(asked).toMatchObject([
    { machineId: "m-1", reset: true },
    { machineId: "m-2", reset: true },
  ]);
});
