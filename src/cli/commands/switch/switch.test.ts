import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { Forge } from "../../../../contract/forge/forge_pb.js";
import { DeletedSwitches, SwitchService } from "../../../../contract/millwright/v1/switch_pb.js";
import { createFakeShelves } from "../../../../test/support/cli/fake-shelves.ts";
import { createFakeTerminal, noted, runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const now = new Date(120_000);
const sw = (trayIndex: number, more: object = {}) => ({
  ...{ id: `sw-${trayIndex}`, name: `rack-1-switch-${trayIndex}`, rackId: "rack-1", trayIndex, state: "ready" },
  ...{ stateSince: { seconds: 60n }, powerState: "on", health: "ok", fabric: { state: "ok" } },
  ...more,
});

function site(switches: readonly ReturnType<typeof sw>[]) {
  const asked: unknown[] = [];
  const routes = (router: ConnectRouter) => {
    router.service(SwitchService, {
      listSwitches: (request) => ({ ...noted(asked, request), switches: [...switches] }),
      getSwitch({ id }) {
        const found = switches.find((each) => each.id === id);
        if (!found) throw new ConnectError(`switch ${id} does not exist`, Code.NotFound);
        return { switch: found };
      },
      refreshSwitch: (request) => noted(asked, request),
    });
    router.service(Forge, {
      findSwitchesByIds: () => ({ switches: [] }),
      findSwitches: ({ name }) => ({
        switches: switches.filter((each) => each.name === name).map(({ id }) => ({ id: { id } })),
      }),
    });
  };
  return { asked, routes };
}

test("a list asks for what its options say, and stands by rack and tray", async () => {
  const { asked, routes } = site([sw(10), sw(2)]);
  const line =
    "switch list --filter fabric=not_ok --rack rack-1 --state bom-validating --stuck --failing --total -o csv";
  const { out } = await runAgainst(routes, line, { now });
  expect(asked).toMatchObject([
    {
      ...{ filter: "fabric=not_ok", rackId: "rack-1", state: "bom_validating", stuckOnly: true, failingOnly: true },
      ...{ withTotal: true, deleted: DeletedSwitches.UNSPECIFIED },
    },
  ]);
  expect(out.match(/^sw-\d+/gm)).toEqual(["sw-2", "sw-10"]);
});

test("what is stuck is marked, and says why", async () => {
  const { routes } = site([
    sw(1, { stuck: true, failing: true, condition: "failing", stateReason: "its BMC is silent" }),
  ]);
  const { out } = await runAgainst(routes, "sw list", { now });
  expect(out).toMatch(/ready \(failing\) +1m +on\? +ok\? +ok +its BMC is silent/);
});

test("one is shown by its name, with the command that explains it", async () => {
  const cause = { cause: "the serial is another" };
  const { routes } = site([sw(3, { state: "error", stuck: true, stateDetail: cause, firmware: { bmc: "1.2" } })]);
  const { out } = await runAgainst(routes, "switch show rack-1-switch-3", { now });
  expect(out).toMatch(/State: +error/);
  expect(out).toMatch(/Why: +the serial is another/);
  expect(out).toMatch(/Firmware: +bmc 1.2/);
  expect(out).toMatch(/Explained by: +millwright explain switch sw-3/);
});

test("one that does not exist is not found, by either", async () => {
  const { code, err } = await runAgainst(site([]).routes, "switch show sw-9", { now });
  expect({ code, err }).toMatchObject({ code: 3, err: expect.stringContaining("switch sw-9 does not exist") });
});

test("refresh takes a name", async () => {
  const { asked, routes } = site([sw(3)]);
  expect((await runAgainst(routes, "switch refresh rack-1-switch-3")).code).toBe(0);
  expect(asked).toMatchObject([{ id: "sw-3" }]);
});

test("--watch prints a line for each change", async () => {
  const events = createFakeShelves();
  const switches = [sw(1)];
  const { routes } = site(switches);
  const terminal = createFakeTerminal({ now });
  const both = (router: ConnectRouter) => {
    events.routes(router);
    routes(router);
  };
  const running = runAgainst(both, "switch list --watch -o csv", { terminal });
  await terminal.printed("sw-1");
  switches[0] = sw(1, { state: "error" });
  events.emit({ kind: "switch", id: "sw-1", type: "transition" });
  await terminal.printed("error");
  terminal.interrupt();
  expect((await running).code).toBe(130);
});
