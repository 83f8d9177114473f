import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  AuditService,
  type ExportJournalRequest,
  type ListRefusedCallsRequest,
  type VerifyJournalRequest,
  type VerifyJournalResponseSchema,
} from "../../../../contract/millwright/v1/audit_pb.js";
import { noted, runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const list = async (line: string) => {
  const sent: ListRefusedCallsRequest[] = [];
  const result = await runAgainst(
    (router) =>
      router.service(AuditService, {
        listRefusedCalls: (request) => ({
          ...noted(sent, request),
          refusedCalls: [
            { who: "", address: "192.0.2.1", method: "GET /metrics", outcome: "sign_in_failed", calls: 41n },
            { who: "kim", address: "192.0.2.2", method: "forge.Forge/Version", outcome: "refused", calls: 2n },
          ],
        }),
      }),
    line,
    { now: new Date("2026-01-02T00:00:00Z") },
  );
  return { ...result, filter: sent[0]?.filter };
};

test("who was not let in is listed, with how often and from where", async () => {
  const { out, filter } = await list("audit list --since 1h --outcome denied");
  expect(filter).toBe("last_at>=2026-01-01T23:00:00.000Z");
  expect(out).toMatch(/192\.0\.2\.1 +sign_in_failed +41 +GET \/metrics/);
  expect(out).toMatch(/kim +192\.0\.2\.2 +refused +2 +forge\.Forge\/Version/);
});

test("the options narrow the list together", async () => {
  expect((await list("audit list --who kim --address ::1 --outcome refused --filter calls>1")).filter).toBe(
    "last_at>=2026-01-01T00:00:00.000Z AND who=kim AND address=::1 AND outcome=refused AND calls>1",
  );
});

const verify = (answers: readonly MessageInitShape<typeof VerifyJournalResponseSchema>[], line = "audit verify") => {
  const sent: VerifyJournalRequest[] = [];
  const run = runAgainst(
    (router) =>
      router.service(AuditService, {
        verifyJournal: (request) => ({ ...noted(sent, request), ...answers[sent.length - 1] }),
      }),
    line,
  );
  return run.then((result) => ({ ...result, sent }));
};

test("the seals of all pages are verified, and the head is printed", async () => {
  const { code, out, sent } = await verify(
    [
      { seals: 500n, entries: 900n, nextSeal: 500n, head: "500:aa" },
      { seals: 3n, entries: 4n, removedEntries: 2n, head: "503:bb" },
    ],
    `audit verify --head 7:${"0".repeat(64)}`,
  );
  expect(sent.map(({ afterSeal, head }) => [afterSeal, head === ""])).toEqual([
    [0n, false],
    [500n, true],
  ]);
  expect(code).toBe(0);
  expect(out).toMatch(/as it was sealed/);
  expect(out).toMatch(/904 entries under 503 seals/);
  expect(out).toMatch(/Head: +503:bb/);
});

test("what does not match is named, and is exit code 1", async () => {
  const problem = {
    kind: "entry_changed",
    seal: 9n,
    cursor: "1.2.3",
    thingKind: "run",
    thingId: "r-\u202e1",
    version: 4n,
  };
  const { code, out } = await verify([{ problem, head: "8:cc" }]);
  expect(code).toBe(1);
  expect(out).toContain("entry 1.2.3 (run r-\\u202e1, version 4) was changed after seal 9");
});

test("the history is exported as lines, page after page", async () => {
  const sent: ExportJournalRequest[] = [];
  const { out } = await runAgainst(
    (router) =>
      router.service(AuditService, {
        exportJournal: (request) => ({
          ...noted(sent, request),
          events: [{ cursor: `1.1.${sent.length}`, kind: "machine", reason: "line\nbreak \u202e" }],
          nextCursor: `1.1.${sent.length}`,
          end: sent.length === 2,
        }),
      }),
    "audit export --since 1h --until 2026-01-01T23:30:00Z",
    { now: new Date("2026-01-02T00:00:00Z") },
  );
  expect(sent.map(({ after, since, until }) => [after, since?.seconds, until?.seconds])).toEqual([
    ["", 1_767_308_400n, 1_767_310_200n],
    ["1.1.1", 1_767_308_400n, 1_767_310_200n],
  ]);
  expect(out.trimEnd().split("\n")).toHaveLength(2);
  expect(out).not.toContain("\u202e");
  expect(JSON.parse(out.split("\n")[1] ?? "")).toMatchObject({ cursor: "1.1.2", reason: "line\nbreak \u202e" });
});
