import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { Script_Origin, ScriptService } from "../../../../contract/millwright/v1/script_pb.js";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const digest = `sha256:${"ab".repeat(32)}`;
const script = {
  ref: "own.sh",
  digest,
  sizeBytes: 20,
  description: "Clears the queue.",
  variables: "queue (a name)",
  origin: Script_Origin.SITE,
  planIds: ["plan-a", "plan-b"],
};
const routes = (router: ConnectRouter) =>
  void router.service(ScriptService, {
    listScripts: () => ({ scripts: [script] }),
    getScript({ ref }) {
      if (ref !== script.ref) throw new ConnectError(`there is no script "${ref}"`, Code.NotFound);
      return { script, text: "#!/bin/sh\necho own\n" };
    },
  });

test("scripts are listed with what they do, where they come from and which plans run them", async () => {
  const { code, out } = await runAgainst(routes, ["script", "list"]);
  expect(code).toBe(0);
  expect(out).toMatch(/own\.sh\s+site\s+sha256:abababababab\s+plan-a plan-b\s+Clears the queue\./);
  expect((await runAgainst(routes, ["script", "list", "-o", "csv"])).out).toContain(digest);
});

test("a script is shown with its text, for people and for programs", async () => {
  const { out } = await runAgainst(routes, ["script", "show", "own.sh"]);
  expect(out).toMatch(/Variables:\s+queue \(a name\)/);
  expect(out).toMatch(/Text\n#!\/bin\/sh\necho own\n$/);
  const json = JSON.parse((await runAgainst(routes, ["script", "show", "own.sh", "-o", "json"])).out);
  expect(json).toMatchObject({ text: "#!/bin/sh\necho own\n", script: { ref: "own.sh", digest } });
});

test("a script that is not there is said so, with the exit code for it", async () => {
  expect(await runAgainst(routes, ["script", "show", "none.sh"])).toMatchObject({
    code: 3,
    err: expect.stringContaining('there is no script "none.sh"'),
  });
});
