import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { MachineService } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { Forge, PowerShelfMaintenanceOperation } from "../../../../contract/forge/forge_pb.js";
import { createFakeShelves } from "../../../../test/support/cli/fake-shelves.ts";
import { createFakeTerminal, noted, runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const { POWER_ON, POWER_OFF } = PowerShelfMaintenanceOperation;

async function submit(line: string) {
  const fake = createFakeShelves();
  const result = await runAgainst(fake.routes, line);
  const request = fake.maintenance[0];
  return {
    ...result,
    ids: request?.powerShelfIds.map(({ id }) => id),
    operation: request?.operation,
    reference: request?.reference,
    calls: fake.maintenance.length,
  };
}

describe("the grammar of the specification", () => {
  test("a single shelf", async () => {
    const sent = await submit("power-shelf maintenance power-off --power-shelf-id a");
    expect(sent).toMatchObject({ code: 0, ids: ["a"], operation: POWER_OFF, reference: undefined, calls: 1 });
  });

  test("several shelves, the flag repeated, with a reference", async () => {
    const sent = await submit(
      "power-shelf maintenance power-on --power-shelf-id a --power-shelf-id b --reference https://tracker/MAINT-123",
    );
    expect(sent).toMatchObject({
      code: 0,
      ids: ["a", "b"],
      operation: POWER_ON,
      reference: "https://tracker/MAINT-123",
      calls: 1,
    });
  });

  test("several shelves, one flag with several values", async () => {
    expect(await submit("power-shelf maintenance power-off --power-shelf-id a b c")).toMatchObject({
      code: 0,
      ids: ["a", "b", "c"],
      operation: POWER_OFF,
    });
  });

  test("the visible aliases", async () => {
    expect(await submit("power-shelf fix power-on --id a b")).toMatchObject({
      code: 0,
      ids: ["a", "b"],
      operation: POWER_ON,
    });
    expect(await submit("ps fix power-off --id a --ref t")).toMatchObject({
      code: 0,
      ids: ["a"],
      operation: POWER_OFF,
      reference: "t",
    });
  });

  test("flags of both spellings and both ways mixed", async () => {
    expect(await submit("ps maintenance power-on --id a b --power-shelf-id c --ref x -o json")).toMatchObject({
      code: 0,
      ids: ["a", "b", "c"],
      reference: "x",
    });
  });

  test("commas do not separate ids", async () => {
    expect(await submit("ps fix power-on --id a,b")).toMatchObject({ ids: ["a,b"] });
  });

  test("an empty reference counts as none", async () => {
    const fake = createFakeShelves();
    await runAgainst(fake.routes, ["ps", "fix", "power-on", "--id", "a", "--ref", ""]);
    expect(fake.maintenance[0]?.reference).toBeUndefined();
  });
});

test("the aliases are visible in the help", async () => {
  const { routes } = createFakeShelves();
  expect((await runAgainst(routes, "power-shelf --help")).out).toContain("maintenance|fix");
  for (const operation of ["power-on", "power-off"])
    expect((await runAgainst(routes, `power-shelf maintenance ${operation} --help`)).out).toMatch(
      /--id, --power-shelf-id <id\.\.\.>[\s\S]*--ref, --reference <url>/,
    );
});

test("the answer is the line of the specification, with the count", async () => {
  expect((await submit("ps fix power-on --id a b")).out).toBe(
    "Power shelf maintenance request submitted for 2 power shelves.\n",
  );
  expect((await submit("ps fix power-on --id a")).out).toBe(
    "Power shelf maintenance request submitted for 1 power shelves.\n",
  );
});

describe("names", () => {
  const named = () => {
    const fake = createFakeShelves();
    fake.put({ id: "ps-1", name: "Left Shelf" });
    fake.put({ id: "ps-2", name: "ps-1" });
    fake.put({ id: "ps-3", name: "twin" });
    fake.put({ id: "ps-4", name: "twin" });
    return fake;
  };
  const asked = async (...ids: string[]) => {
    const fake = named();
    const { code, err } = await runAgainst(fake.routes, ["ps", "fix", "power-on", "--id", ...ids]);
    return { code, err, ids: fake.maintenance[0]?.powerShelfIds.map(({ id }) => id) };
  };

  test("stand for ids, and an id wins over a name", async () => {
    expect(await asked("Left Shelf", "ps-1", "ps-2")).toMatchObject({ code: 0, ids: ["ps-1", "ps-2"] });
  });

  test("that several shelves have are not guessed at", async () => {
    const { code, err, ids } = await asked("ps-1", "twin");
    expect({ code, ids }).toEqual({ code: 2, ids: undefined });
    expect(err).toContain("give the id: ps-3, ps-4");
  });

  test("that no shelf has are left to the server to refuse", async () => {
    expect((await asked("nobody", "")).ids).toEqual(["nobody", ""]);
  });
});

test("an id given twice counts once", async () => {
  const sent = await submit("ps fix power-on --id a a");
  expect(sent.ids).toEqual(["a"]);
  expect(sent.out).toContain("for 1 power shelves");
});

test.each([
  ["ps fix power-on", "--power-shelf-id <id...>' not specified"],
  ["ps fix power-on --id", "argument missing"],
  ["ps fix power-cycle --id a", "unknown command 'power-cycle'"],
  ["ps fix power-on --id a --timeout 5m", "needs --wait"],
  ["ps fix power-on --id a --wait --timeout soon", '--timeout: "soon" is not a duration'],
  ["ps fix power-on --id a --wait --timeout 0s", "leave --wait out"],
])("%s is a usage error and sends nothing", async (line, message) => {
  const sent = await submit(line);
  expect(sent).toMatchObject({ code: 2, calls: 0, out: "" });
  expect(sent.err).toContain(message);
});

test("a refusal by the server is told with its exit code", async () => {
  const result = await runAgainst(
    (router) =>
      router.service(Forge, {
        setPowerShelfMaintenance() {
          throw new ConnectError("power shelf b does not exist", Code.NotFound);
        },
      }),
    "ps fix power-on --id a b",
  );
  expect(result).toEqual({ code: 3, out: "", err: "error: power shelf b does not exist\n" });
});

/** Two shelves, and a controller that ends their requests as told, one after the other. */
function withController(outcomes: { readonly [id: string]: { outcome: string; message?: string } }) {
  const fake = createFakeShelves();
  for (const id of Object.keys(outcomes))
    fake.put({ id, state: "ready", lastRequest: { id: "old", outcome: "completed" } });
  fake.onMaintenance = ({ powerShelfIds }) => {
    for (const { id } of powerShelfIds) {
      fake.put({
        id,
        state: "maintenance",
        pendingRequest: { id: `r-${id}` },
        lastRequest: { id: "old", outcome: "completed" },
      });
    }
  };
  const end = (id: string) => {
    const { outcome, message = "" } = outcomes[id] ?? { outcome: "completed" };
    fake.put({
      id,
      state: outcome === "completed" ? "ready" : "error",
      lastRequest: { id: `r-${id}`, outcome, message },
    });
    fake.emit({ kind: "power_shelf", id, type: "request_ended" });
  };
  return { fake, end };
}

describe("--wait", () => {
  test("ends with 0 once every shelf has completed, and tells each as it does", async () => {
    const { fake, end } = withController({ a: { outcome: "completed" }, b: { outcome: "completed" } });
    const terminal = createFakeTerminal();
    const running = runAgainst(fake.routes, "ps fix power-off --id a b --wait", { terminal });
    await terminal.printed("b   maintenance    pending");
    end("a");
    await terminal.printed("a   ready          completed");
    end("b");
    const { code, out } = await running;
    expect(code).toBe(0);
    expect(out).toContain("Power shelf maintenance request submitted for 2 power shelves.\n");
    expect(out).toContain("2 of 2 completed");
  });

  test("ends with 1 and the reason when a shelf failed", async () => {
    const { fake, end } = withController({ a: { outcome: "failed", message: "BMC refused" } });
    const terminal = createFakeTerminal();
    const running = runAgainst(fake.routes, "ps fix power-off --id a --wait", { terminal });
    await terminal.printed("pending");
    end("a");
    const { code, out } = await running;
    expect(code).toBe(1);
    expect(out).toContain("a   error          failed      BMC refused");
    expect(out).toContain("0 of 1 completed");
  });

  test("sees a shelf that was done before the first pass", async () => {
    const fake = createFakeShelves();
    fake.put({ id: "a", state: "ready" });
    fake.onMaintenance = () => fake.put({ id: "a", state: "ready", lastRequest: { id: "r", outcome: "completed" } });
    expect((await runAgainst(fake.routes, "ps fix power-on --id a --wait")).code).toBe(0);
  });

  test("does not take the outcome of an earlier request for its own", async () => {
    const { fake, end } = withController({ a: { outcome: "failed" } });
    const terminal = createFakeTerminal();
    const running = runAgainst(fake.routes, "ps fix power-on --id a --wait", { terminal });
    await terminal.printed("pending");
    fake.put({
      id: "a",
      state: "configuring",
      pendingRequest: { id: "r-a" },
      lastRequest: { id: "old", outcome: "completed" },
    });
    fake.emit({ kind: "power_shelf", id: "a", type: "facts_changed" });
    await terminal.printed("a   configuring    pending");
    end("a");
    expect((await running).code).toBe(1);
  });

  test("ends with 1 when another request took its place, or the shelf is gone", async () => {
    const { fake } = withController({ a: { outcome: "completed" }, b: { outcome: "completed" } });
    const terminal = createFakeTerminal();
    const running = runAgainst(fake.routes, "ps fix power-on --id a b --wait", { terminal });
    await terminal.printed("pending");
    fake.put({
      id: "a",
      state: "ready",
      pendingRequest: { id: "other", operation: "power_off", initiator: "kim" },
      lastRequest: { id: "x" },
    });
    fake.emit({ kind: "power_shelf", id: "a", type: "requested" });
    fake.shelves.delete("b");
    fake.emit({ kind: "power_shelf", id: "b", type: "deleted" });
    const { code, out } = await running;
    expect(code).toBe(1);
    expect(out).toContain("superseded  another request took its place: power_off by kim");
    expect(out).toContain("b   gone           gone");
  });

  test("goes on after the connection broke, from where it was", async () => {
    const { fake, end } = withController({ a: { outcome: "completed" } });
    const terminal = createFakeTerminal();
    const running = runAgainst(fake.routes, "ps fix power-on --id a --wait", { terminal });
    await terminal.printed("pending");
    fake.breakStreams();
    end("a");
    const { code, err } = await running;
    expect(code).toBe(0);
    expect(err).toContain("connection lost");
    expect(fake.watches[1]).toMatchObject({ fromNow: false, fromCursor: "0" });
  });

  test("gives up after --timeout with 6, saying that the request goes on", async () => {
    const { fake } = withController({ a: { outcome: "completed" } });
    const { code, err } = await runAgainst(fake.routes, "ps fix power-on --id a --wait --timeout 50ms");
    expect(code).toBe(6);
    expect(err).toContain("still pending: a");
    expect(err).toContain("the request goes on");
  });

  test("ends with 130 when interrupted", async () => {
    const { fake } = withController({ a: { outcome: "completed" } });
    const terminal = createFakeTerminal();
    const running = runAgainst(fake.routes, "ps fix power-on --id a --wait", { terminal });
    await terminal.printed("pending");
    terminal.interrupt();
    expect((await running).code).toBe(130);
  });

  test("prints one JSON document for programs", async () => {
    const { fake, end } = withController({ a: { outcome: "failed", message: "no" } });
    const terminal = createFakeTerminal();
    fake.onMaintenance = ((before) => (request) => {
      before(request);
      queueMicrotask(() => end("a"));
    })(fake.onMaintenance);
    const { code, out } = await runAgainst(fake.routes, "ps fix power-on --id a --wait -o json", { terminal });
    expect(code).toBe(1);
    expect(JSON.parse(out)).toEqual([{ id: "a", request_id: "r-a", state: "error", outcome: "failed", message: "no" }]);
  });

  test("does not submit anything when the events cannot be followed", async () => {
    const fake = createFakeShelves();
    const { code } = await runAgainst(
      (router) => router.service(Forge, { setPowerShelfMaintenance: (request) => noted(fake.maintenance, request) }),
      "ps fix power-on --id a --wait",
    );
    expect(code).toBe(4);
    expect(fake.maintenance).toEqual([]);
  });
});

describe("power-off in a rack with machines that serve a cluster", () => {
  const LINE = "power-shelf maintenance power-off --id a";
  const filters: string[] = [];
  function rack(serving: readonly string[]) {
    const fake = createFakeShelves();
    fake.put({ id: "a", rackId: "rack-1" });
    const routes = (router: ConnectRouter) => {
      fake.routes(router);
      router.service(MachineService, {
        listMachines({ filter }) {
          filters.push(filter);
          return { machines: serving.map((machineId) => ({ machineId })) };
        },
      });
    };
    return { fake, routes };
  }

  test("is refused without a terminal, and names them", async () => {
    const { fake, routes } = rack(["m-1", "m-2"]);
    const { code, err } = await runAgainst(routes, LINE);
    expect(code).toBe(2);
    expect(err).toContain("Rack rack-1 has machines that serve a cluster and are not drained: m-1, m-2.");
    expect(fake.maintenance).toEqual([]);
    expect(filters.at(-1)).toContain("rack=rack-1 AND serves_cluster=true");
  });

  test("goes on with --yes, at a terminal with yes, and where none serves", async () => {
    const tries = [
      [["m-1"], `${LINE} --yes`, {}],
      [["m-1"], LINE, { isTTY: true, answer: "yes" }],
      [[], LINE, {}],
      [["m-1"], LINE.replace("off", "on"), {}],
    ] as const;
    for (const [serving, line, options] of tries) {
      const { fake, routes } = rack(serving);
      expect((await runAgainst(routes, line, options)).code).toBe(0);
      expect(fake.maintenance).toHaveLength(1);
    }
  });
});
