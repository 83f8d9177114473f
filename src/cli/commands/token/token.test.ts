import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { LifecycleService, TransitionOwner } from "../../../../contract/millwright/v1/lifecycle_pb.js";
import { type GetSystemResponseSchema, SystemService } from "../../../../contract/millwright/v1/system_pb.js";
import { type CreateTokenRequest, TokenService } from "../../../../contract/millwright/v1/token_pb.js";
import { noted, runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

test("a new token alone goes to the output, so that it can be sent into a file", async () => {
  const sent: CreateTokenRequest[] = [];
  const result = await runAgainst(
    (router) =>
      router.service(TokenService, {
        createToken: (request) => ({
          ...noted(sent, request),
          id: "t1",
          token: "mw_secret",
          validUntil: { seconds: 60n },
        }),
      }),
    "token create ci --role operator viewer --scope methods=runs,machines labels=env=test --expires-in 1d",
    { now: new Date(0) },
  );
  const err = expect.stringMatching(/^Token t1 for ci, valid until 1970-01-01 \S+; it is shown only this once:\n$/);
  expect(result).toEqual({ code: 0, out: "mw_secret\n", err });
  expect(sent[0]).toMatchObject({ name: "ci", roles: ["operator", "viewer"], expiresAt: { seconds: 86_400n } });
  expect(sent[0]?.scope).toMatchObject({ methods: ["runs", "machines"], racks: [], labels: ["env=test"] });
});

test.each(["nothing", "methods=", "methods=runs,,machines", "rooms=a"])(
  "a scope %s is refused by itself",
  async (word) => {
    const { code, err } = await runAgainst(() => {}, ["token", "create", "ci", "--role", "viewer", "--scope", word]);
    expect(code).toBe(2);
    expect(err).toContain("is not methods=A,B, racks=A,B, clusters=A,B, customers=A,B, labels=A,B");
  },
);

test("the list turns pages and tells which tokens still work", async () => {
  const { out } = await runAgainst(
    (router) =>
      router.service(TokenService, {
        listTokens: ({ pageToken }) =>
          pageToken === ""
            ? {
                tokens: [{ id: "a", name: "one", scope: { methods: ["runs"] }, expiresAt: { seconds: 1n } }],
                nextPageToken: "p",
              }
            : {
                tokens: [
                  { id: "b", name: "two" },
                  { id: "d", name: "four", validUntil: { seconds: BigInt(Math.floor(Date.now() / 1000) + 86_400) } },
                  { id: "c", name: "three", revokedAt: { seconds: 1n } },
                ],
              },
      }),
    "token list",
  );
  expect(out).toMatch(/a +one +- +methods=runs +expired/);
  expect(out).toMatch(/b +two +- +- +valid/);
  expect(out).toMatch(/d +four +- +- +ends soon/);
  expect(out).toMatch(/c +three +- +- +revoked/);
});

test("the list takes a filter, an order, a limit and a total", async () => {
  const asked: object[] = [];
  const { err } = await runAgainst(
    (router) =>
      router.service(TokenService, {
        listTokens({ filter, orderBy, pageSize, withTotal }) {
          asked.push({ filter, orderBy, pageSize, withTotal });
          return { tokens: [{ id: "a" }, { id: "b" }], nextPageToken: "p", totalSize: 9 };
        },
      }),
    ["token", "list", "--filter", "status=valid", "--order-by", "last_used_at desc", "--limit", "2", "--total"],
  );
  expect(asked).toEqual([{ filter: "status=valid", orderBy: "last_used_at desc", pageSize: 2, withTotal: true }]);
  expect(err).toBe("2 of 9\n");
});

test("revoke names its token", async () => {
  const revoked: string[] = [];
  await runAgainst(
    (router) => router.service(TokenService, { revokeToken: ({ id }) => noted(revoked, id) }),
    "token revoke a --yes",
  );
  expect(revoked).toEqual(["a"]);
});

const systemOf = (system: MessageInitShape<typeof GetSystemResponseSchema>, line = "system", options = {}) =>
  runAgainst((router) => router.service(SystemService, { getSystem: () => system }), line, options);

test("system shows how the server's clock compares with the database's, in red and with what helps where it is off", async () => {
  expect((await systemOf({ version: "9.9" })).out).not.toContain("Server clock");
  expect((await systemOf({ clockAheadSeconds: 0 })).out).toMatch(/^Server clock: +as the database's$/m);
  const near = await systemOf({ clockAheadSeconds: -0.012 });
  expect(near.out).toMatch(/^Server clock: +0.012s behind the database's$/m);
  const off = { clockAheadSeconds: 90, clockTrouble: "this host's clock is 1m 30s ahead of the database's" };
  expect((await systemOf(off)).out).toMatch(/^Server clock: +90s ahead of the database's; have both set by NTP$/m);
  expect((await systemOf(off, "system", { isTTY: true })).out).toContain("\u001b[31m90s ahead of");
  expect(JSON.parse((await systemOf(off, "system -o json")).out)).toMatchObject({
    clock_ahead_seconds: 90,
    clock_trouble: off.clockTrouble,
  });
});

test("system tells which server answers and who it takes us for", async () => {
  const { out } = await runAgainst(
    (router) =>
      router.service(SystemService, {
        getSystem: () => ({ version: "9.9", replicaId: "r", caller: { name: "kim", roles: ["admin"] } }),
      }),
    "system",
  );
  expect(out).toMatch(/Version: +9.9/);
  expect(out).toMatch(/You are: +kim/);
});

const lifecycle = {
  kind: "power_shelf",
  initial: "initializing",
  states: [
    { name: "initializing", doc: "Record exists.", sla: { seconds: 300n } },
    { name: "ready", resting: true, doc: "In use." },
  ],
  transitions: [
    { from: "initializing", to: "ready", owner: TransitionOwner.HANDLER, trigger: "configured" },
    { from: "*", deletes: true, owner: TransitionOwner.CONTROLLER, trigger: "removed" },
    { from: "ready", stays: true, owner: TransitionOwner.CALLER, trigger: "noted" },
  ],
};
const lifecycles = (line: string) =>
  runAgainst(
    (router) =>
      router.service(LifecycleService, {
        getLifecycle: ({ kind }) => ({ lifecycle: { ...lifecycle, kind } }),
        listLifecycles: () => ({ lifecycles: [lifecycle] }),
      }),
    line,
  );

test("a lifecycle is shown with its states and who makes each transition", async () => {
  const { out } = await lifecycles("lifecycle show power-shelf");
  expect(out).toMatch(/initializing +works, 5m +- +Record exists\./);
  expect(out).toMatch(/initializing +ready +handler +configured/);
  expect(out).toMatch(/\(any\) +\(gone\) +controller +removed/);
  expect((await lifecycles("lifecycle list")).out).toMatch(/power_shelf +initializing +3 +initializing ready/);
});

test("its diagram has every way", async () => {
  expect((await lifecycles("lifecycle show ps --mermaid")).out).toBe(
    [
      "stateDiagram-v2",
      "    [*] --> initializing",
      '    state "any state" as any_state',
      "    initializing --> ready : configured",
      "    any_state --> [*] : removed",
      "    ready --> ready : noted",
      "",
    ].join("\n"),
  );
});
