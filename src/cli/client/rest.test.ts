import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { createFakeTerminal } from "../../../test/support/cli/fake-terminal.ts";
import { runCli } from "../run-cli.ts";

test.each(["", "/", "/millwright", "/millwright/"])("a server is found at the path %j of a proxy", async (path) => {
  const asked: (string | undefined)[] = [];
  const proxy = createServer((request, response) => {
    asked.push(request.url?.split("?", 1)[0]);
    response.writeHead(200, { "content-type": "application/json" }).end('{"success":true,"data":[],"total":0}');
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${path}`;
  const terminal = createFakeTerminal();
  expect(await runCli(["node", "list", "--server", url], { version: "1", terminal })).toBe(0);
  expect(asked).toEqual([`${path.replace(/\/$/, "")}/api/v1/nodes`]);
  proxy.closeAllConnections();
  proxy.close();
});
