import { expect, test } from "vitest";
import { AccessService } from "../../../../contract/millwright/v1/access_pb.js";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const ask = (line: string) =>
  runAgainst(
    (router) =>
      router.service(AccessService, {
        getMyAccess: () => ({ name: "kim", roles: ["viewer"], methods: ["a.B/C"], routes: ["GET /x"] }),
        canI: ({ method, on }) =>
          method === "StartRun"
            ? {
                method: ["a.RunService/StartRun", ...on.map(({ kind, id }) => `${kind}:${id}`)].join(" "),
                allowed: true,
              }
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

test("the things are sent with it, whatever word their kind goes by", async () => {
  expect((await ask("auth can-i StartRun --on machine/m-1 ps/shelf/1")).out).toContain(
    "machine:m-1 power_shelf:shelf/1",
  );
  const { code, err } = await ask("auth can-i StartRun --on m-1");
  expect(code).toBe(2);
  expect(err).toContain('"m-1" is not <kind>/<id>');
});

test("shows who one is, and everything that one may call", async () => {
  const { out } = await ask("auth show");
  expect(out).toMatch(/You are: +kim(.|\n)*a\.B\/C\n(.|\n)*GET \/x\n/);
});
