import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConnectRouter } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FleetNodeService } from "../../../../contract/millwright/v1/fleet_node_pb.js";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "millwright-onboard-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

/** Keeps what it is asked. */
function fakeServer() {
  const asked: object[] = [];
  const keep = (request: object) => asked.push(request);
  const routes = (router: ConnectRouter) =>
    router.service(FleetNodeService, {
      onboardNode(request) {
        keep(request);
        return { node: { node: { id: "fn-1", hostname: request.hostname, state: "enrolling" } } };
      },
      onboardNodes(request) {
        keep(request);
        return { runId: "run-1" };
      },
    });
  return { asked, routes };
}

const COMMON = ["fleet", "onboard", "--site", "lab", "--profile", "h100", "--sku", "gpu8"];
const ONE = [...COMMON, "--hostname", "gpu-17", "--ipmi-ip", "10.0.0.17"];

describe("fleet onboard", () => {
  test("hands in the account of the BMC, and repeats no password", async () => {
    const { asked, routes } = fakeServer();
    const account = ["--bmc-username", "maas", "--bmc-password-file", file("password", "hush\n")];
    const { out, err, code } = await runAgainst(routes, [...ONE, ...account]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(asked).toMatchObject([{ hostname: "gpu-17", bmcUsername: "maas", bmcPassword: "hush" }]);
    expect(out).not.toContain("hush");
  });

  test("gives no account where none is named", async () => {
    const { asked, routes } = fakeServer();
    await runAgainst(routes, ONE);
    expect(asked).toMatchObject([{ bmcUsername: "", bmcPassword: "" }]);
  });

  test("takes the account of each node from the file, and that of the options for the others", async () => {
    const { asked, routes } = fakeServer();
    const rows = "hostname,ipmi_ip,bmc_username,bmc_password\ngpu-1,10.0.0.1,root,own\ngpu-2,10.0.0.2,,\n";
    const account = ["--bmc-username", "maas", "--bmc-password-file", file("password", "hush\n")];
    const { out, err, code } = await runAgainst(routes, [...COMMON, "--file", file("nodes.csv", rows), ...account]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(asked).toMatchObject([
      {
        nodes: [
          { hostname: "gpu-1", bmcUsername: "root", bmcPassword: "own" },
          { hostname: "gpu-2", bmcUsername: "maas", bmcPassword: "hush" },
        ],
      },
    ]);
    expect(out).not.toMatch(/own|hush/);
  });

  test.each([
    ["a password without a name", [...ONE, "--bmc-password-stdin"], "--bmc-username"],
    ["standard input twice", [...COMMON, "--file", "-", "--bmc-username", "maas", "--bmc-password-stdin"], "both read"],
    ["a name without a password", [...ONE, "--bmc-username", "maas"], "the BMC password is needed"],
  ])("with %s is refused before the server is asked", async (_what, words, says) => {
    const { asked, routes } = fakeServer();
    const { code, err } = await runAgainst(routes, words);
    expect(code).toBe(2);
    expect(err).toContain(says);
    expect(asked).toEqual([]);
  });
});
