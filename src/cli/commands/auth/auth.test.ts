import { expect, test } from "vitest";
import { AccessService } from "../../../../contract/millwright/v1/access_pb.js";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const ask = (line: string) =>
  runAgainst(
    (router) =>
      router.service(AccessService, {
        getMyAccess: () => ({ name: "kim", roles: ["viewer"], methods: ["a.B/C"], routes: ["GET /x"] }),
        canI: ({ method }) =>
          method === "StartRun"
            ? { method: "a.RunService/StartRun", allowed: true }
            : { method, allowed: false, reason: "'kim' (role viewer) may not", next: "ask" },
      }),
    line,
  );

test("yes is exit code 0, and no is 5 with the reason", async () => {
  expect(await ask("auth can-i StartRun")).toMatchObject({
    code: 0,
    out: expect.stringMatching(/a\.RunService\/StartRun\nAllowed: +yes/),
  });
  const { code, out } = await ask("auth can-i DELETE /api/v1/nodes/n-1");
  expect(code).toBe(5);
  expect(out).toMatch(/Method: +DELETE \/api\/v1\/nodes\/n-1\nAllowed: +no\nWhy not: +'kim' \(role viewer\) may not/);
});

test("shows who one is, and everything that one may call", async () => {
  const { out } = await ask("auth show");
  expect(out).toMatch(/You are: +kim(.|\n)*a\.B\/C\n(.|\n)*GET \/x\n/);
});
