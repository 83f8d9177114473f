import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AppError } from "../../../src/kernel/errors.ts";
import { systemClock } from "../../../src/kernel/time/clock.ts";
import { INSTALL_STATES, type InstallState } from "../../../src/lifecycles/install/install.ts";
import { INSTALLATION_STATUSES, type NodeReport } from "../../../src/lifecycles/install/report.ts";
import type { Caller } from "../../../src/services/call/caller.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { getInstall, registerInstall } from "../../../src/services/install/installs.ts";
import { applyReports, type ReportAnswer, type ReportInput } from "../../../src/services/install/reports.ts";
import { changeInstallState } from "../../../src/services/install/state/state-changes.ts";
import type { SecretStore } from "../../../src/store/access/secrets.ts";
import { listHistory } from "../../../src/store/lifecycle/journal.ts";
import { openReportDesk } from "../../../src/wiring/installs.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let database: TestDatabase;
let deps: ServiceDeps;
const kim: Caller = { name: "kim", roles: ["operator"], address: "127.0.0.1" };
const OPEN = { requireTokens: false };

beforeAll(async () => {
  database = await createTestDatabase();
  // No service of installs looks at a secret.
  deps = { db: database.db, stores: allStores, secrets: {} as SecretStore, maxFindByIds: 100 };
});
afterAll(() => database.drop());

let count = 0;
const nextMac = () =>
  `02:00:00:00:${[++count >> 8, count & 255].map((part) => part.toString(16).padStart(2, "0")).join(":")}`;

async function register(): Promise<{ id: string; mac: string }> {
  const mac = nextMac();
  const id = await registerInstall(deps, kim, { mac, arch: "x86_64", bootMode: "uefi", groupId: null, facts: {} });
  return { id, mac };
}
const send = (...inputs: ReportInput[]) => applyReports(deps, OPEN, inputs);
const input = (report: NodeReport, more: Partial<ReportInput> = {}): ReportInput => ({
  report,
  address: "10.0.0.9",
  ...more,
});
async function report(
  mac: string,
  status: NodeReport["status"],
  more: Partial<NodeReport> = {},
): Promise<ReportAnswer> {
  const [answer] = await send(input({ mac, ...(status && { status }), ...more }));
  if (answer === undefined || answer instanceof AppError) throw answer ?? new Error("no answer");
  return answer;
}
const take = (id: string, state: InstallState, force = false) =>
  changeInstallState(deps, kim, id, { state, comment: "", force });
const entries = (id: string) =>
  listHistory(deps.db, { key: { kind: "install", id }, types: [], newestFirst: false, after: null, limit: 1_000 });
/** Transitions from one state to another: what a history shows. */
const historyOf = async (id: string) =>
  (await entries(id))
    .filter(({ type, from, to }) => type === "transition" && from !== to)
    .map(({ from, to }) => `${from} → ${to}`);

describe("a report", () => {
  test("of an unknown MAC address is refused, and its neighbours are answered", async () => {
    const { mac } = await register();
    const answers = await send(input({ mac: "02:ff:ff:ff:ff:ff", status: "started" }), input({ mac, hostname: "n1" }));
    expect(answers[0]).toMatchObject({ kind: "not_found" });
    expect(answers[1]).toMatchObject({ message: "Status reported successfully" });
  });

  test("follows the specification's table, with its words", async () => {
    const { id, mac } = await register();
    await take(id, "pending");
    expect((await report(mac, "started")).message).toBe("Installation started");
    expect((await report(mac, "progress", { progress: 40 })).message).toBe("Status reported successfully");
    expect((await getInstall(deps, id)).facts.progress).toBe(40);
    expect((await report(mac, "failed", { error: "Disk not found" })).message).toBe(
      "Installation failed (attempt 1), will retry",
    );
    expect((await getInstall(deps, id)).facts).toMatchObject({
      installAttempts: 1,
      lastInstallError: "Disk not found",
    });
    expect((await report(mac, "failed")).message).toBe("Installation failed (attempt 2), will retry");
    expect((await report(mac, "failed", { error: "still none" })).message).toBe("Installation failed after 3 attempts");
    expect(await getInstall(deps, id)).toMatchObject({
      state: { name: "install_failed" },
      facts: { installAttempts: 3, lastInstallError: "still none" },
    });
    expect(await historyOf(id)).toEqual([
      "discovered → pending",
      "pending → installing",
      "installing → install_failed",
    ]);
  });

  test("of completion ends the install and forgets its failures", async () => {
    const { id, mac } = await register();
    await take(id, "pending");
    await report(mac, "started");
    await report(mac, "failed");
    expect((await report(mac, "complete")).message).toBe("Installation completed");
    expect(await getInstall(deps, id)).toMatchObject({
      state: { name: "installed" },
      facts: { installAttempts: 0, lastInstallError: null, progress: 100 },
    });
  });

  test("that does not fit the state changes nothing and is recorded", async () => {
    const { id, mac } = await register();
    expect((await report(mac, "complete")).message).toBe("Status reported successfully");
    expect((await getInstall(deps, id)).state.name).toBe("discovered");
    const ignored = (await entries(id)).filter(({ type }) => type === "report_ignored");
    expect(ignored).toMatchObject([{ reason: "complete was reported while discovered", data: { status: "complete" } }]);
  });

  test("tells of the node itself; what it leaves out stays", async () => {
    const { id, mac } = await register();
    await report(mac, undefined, { hostname: "n1", ipAddress: "10.0.0.7", vendor: "Acme" });
    await report(mac, undefined, { hostname: "", ipAddress: "10.0.0.8" });
    // Whoever proves nothing replaces nothing.
    expect((await getInstall(deps, id)).facts).toMatchObject({ hostname: "n1", ipAddress: "10.0.0.7", vendor: "Acme" });
    await send(input({ mac, hostname: "", ipAddress: "10.0.0.8" }, { voucher: kim }));
    const { facts } = await getInstall(deps, id);
    expect(facts).toMatchObject({ hostname: "n1", ipAddress: "10.0.0.8", vendor: "Acme" });
    expect(facts.lastSeenAt).toBeInstanceOf(Date);
  });

  test("sent again under the same id changes nothing", async () => {
    const { id, mac } = await register();
    await take(id, "pending");
    await report(mac, "started");
    const failed = () => send(input({ mac, status: "failed" }, { reportId: "boot-1-failed" }));
    await failed();
    await Promise.all([failed(), failed(), failed()]);
    expect((await getInstall(deps, id)).facts.installAttempts).toBe(1);
  });

  test("needs the token of its boot where tokens are required", async () => {
    const { id, mac } = await register();
    const [refused] = await applyReports(deps, { requireTokens: true }, [input({ mac, hostname: "intruder" })]);
    expect(refused).toMatchObject({ kind: "unauthenticated", detail: { field: "report_token" } });
    expect((await getInstall(deps, id)).facts.hostname).toBeNull();
  });
});

describe("at the same moment", { tags: "race" }, () => {
  test("three failures of one node in one batch count three times", async () => {
    const { id, mac } = await register();
    await take(id, "pending");
    await report(mac, "started");
    const answers = await send(...[1, 2, 3].map(() => input({ mac, status: "failed" })));
    expect(answers.map((answer) => (answer instanceof AppError ? answer.kind : answer.message))).toEqual([
      "Installation failed (attempt 1), will retry",
      "Installation failed (attempt 2), will retry",
      "Installation failed after 3 attempts",
    ]);
    expect((await getInstall(deps, id)).state.name).toBe("install_failed");
  });

  test("a batch that fails in the middle is applied once all the same", async () => {
    const { id, mac } = await register();
    await take(id, "pending");
    await report(mac, "started");
    let asked = 0;
    const now = () => {
      asked += 1;
      // The second report of the node, after the first was applied.
      if (asked === 2) throw new Error("out of time");
      return new Date();
    };
    const desk = openReportDesk({ ...deps, clock: { ...systemClock, now } }, OPEN);
    const answers = await Promise.all([1, 2].map(() => desk.submit(input({ mac, status: "failed" }))));
    expect(answers.map((answer) => (answer instanceof AppError ? answer.kind : answer.message))).toEqual([
      "Installation failed (attempt 1), will retry",
      "Installation failed (attempt 2), will retry",
    ]);
    expect(await getInstall(deps, id)).toMatchObject({ state: { name: "installing" }, facts: { installAttempts: 2 } });
  });

  test("complete and failed leave one history, whoever comes first", async () => {
    const { id, mac } = await register();
    await take(id, "pending");
    await report(mac, "started");
    await Promise.all([report(mac, "failed"), report(mac, "complete")]);
    expect(await getInstall(deps, id)).toMatchObject({ state: { name: "installed" }, facts: { installAttempts: 0 } });
    expect(await historyOf(id)).toEqual(["discovered → pending", "pending → installing", "installing → installed"]);
  });

  test("a report and an operator end in what both of them say", async () => {
    for (let round = 0; round < 10; round += 1) {
      const { id, mac } = await register();
      await take(id, "pending");
      await Promise.allSettled([report(mac, "started"), take(id, "retired")]);
      const history = await historyOf(id);
      const { state } = await getInstall(deps, id);
      expect(history.at(-1)).toMatch(new RegExp(`→ ${state.name}$`));
      expect(["retired", "installing"]).toContain(state.name);
    }
  });
});

test("random reports and operators: the history always explains the state", async () => {
  const action = fc.oneof(
    fc.constantFrom(...INSTALLATION_STATUSES).map((status) => ({ type: "report", status }) as const),
    fc.constant({ type: "report", event: "first_boot" } as const),
    fc
      .record({ state: fc.constantFrom(...INSTALL_STATES), force: fc.boolean() })
      .map((wish) => ({ type: "operator", ...wish }) as const),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 1, maxLength: 12 }), async (actions) => {
      const { id, mac } = await register();
      for (const each of actions) {
        if (each.type === "operator") await take(id, each.state, each.force).catch(onlyRefusals);
        else await send(input({ mac, ...each }, { reportId: randomUUID() }));
        const { state, facts } = await getInstall(deps, id);
        const history = await historyOf(id);
        expect(chain(history)).toBe(state.name);
        expect(facts.installAttempts).toBeLessThanOrEqual(3);
        if (facts.installAttempts === 3) expect(state.name).not.toBe("installing");
      }
    }),
    { numRuns: 25 },
  );
});

/** Where a history leads, which must hang together from the first state on. */
function chain(history: readonly string[]): string {
  let state = "discovered";
  for (const edge of history) {
    const [from, to] = edge.split(" → ") as [string, string];
    expect(from).toBe(state);
    state = to;
  }
  return state;
}

function onlyRefusals(error: unknown): void {
  if (!(error instanceof AppError) || error.kind !== "failed_precondition") throw error;
}
