import { expect, test } from "vitest";
import { AuditService, type ListRefusedCallsRequest } from "../../../../contract/millwright/v1/audit_pb.js";
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
