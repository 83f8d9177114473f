import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FleetNodeService } from "../../../../contract/millwright/v1/fleet_node_pb.js";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "millwright-dry-run-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** A server that knows previews alone: whatever would change something is not implemented there. */
function previewing() {
  const asked: object[] = [];
  const routes = (router: ConnectRouter) =>
    router.service(FleetNodeService, {
      listFleetNodes: () => ({ nodes: [{ id: "fn-1" }, { id: "fn-2" }] }),
      previewNodeMove({ node, move, comment }) {
        asked.push({ node, move, comment });
        if (node === "fn-2") throw new ConnectError("fleet node gpu-2 is retired", Code.FailedPrecondition);
        return {
          node: { id: node, hostname: "gpu-1", state: "active" },
          toState: "quarantined",
          notes: ["mind the fan"],
        };
      },
      previewDecommission({ node, mode }) {
        asked.push({ node, mode });
        return { stages: [{ stage: "disable_node" }, { stage: "drain_node", skipped: "no agent" }] };
      },
      previewOnboardings({ nodes }) {
        asked.push(...nodes.map(({ hostname, bmcUsername }) => ({ hostname, bmcUsername })));
        return {
          nodes: nodes.map(({ hostname }, at) => ({
            hostname,
            preview: at === 0 ? { registersMachine: true } : { obstacles: [{ message: "the name is taken" }] },
          })),
        };
      },
    });
  return { asked, routes };
}

test("of a verb shows where each node would go, asks nobody, and fails where one would be refused", async () => {
  const { asked, routes } = previewing();
  const words = ["fleet", "quarantine", "--filter", "site=lab", "--comment", "odd", "--dry-run", "-o", "csv"];
  const { out, code } = await runAgainst(routes, words);
  expect(code).toBe(4);
  expect(out).toContain("gpu-1 would go active → quarantined; mind the fan");
  expect(out).toContain("fleet node gpu-2 is retired");
  expect(asked).toEqual(["fn-1", "fn-2"].map((node) => ({ node, move: "quarantine", comment: "odd" })));
});

test.each([
  ["fleet recover gpu-1", "recover"],
  ["fleet reactivate gpu-1", "reactivate"],
  ["fleet drain abort gpu-1", "drain-abort"],
  ["fleet remove rollback gpu-1", "remove-rollback"],
])("%s --dry-run previews that move", async (line, move) => {
  const { asked, routes } = previewing();
  expect((await runAgainst(routes, `${line} --dry-run`)).code).toBe(0);
  expect(asked).toEqual([{ node: "gpu-1", move, comment: "" }]);
});

test("of a retirement shows the stages, also of nodes that a filter chooses", async () => {
  const { asked, routes } = previewing();
  const { out, code } = await runAgainst(routes, "fleet retire --filter site=lab --dry-run -o csv");
  expect({ code, asked }).toEqual({ code: 0, asked: ["fn-1", "fn-2"].map((node) => ({ node, mode: "retire" })) });
  expect(out).toContain("fn-2,drain_node,skipped: no agent");
});

test("of a file has a line for each node, asks for no password, and fails where one would be refused", async () => {
  const { asked, routes } = previewing();
  const file = join(directory, "nodes.csv");
  writeFileSync(file, "hostname,ipmi_ip,bmc_username,bmc_password\ngpu-1,10.0.0.1,,\ngpu-2,10.0.0.2,root,own\n");
  const common = ["--site", "lab", "--profile", "h100", "--sku", "gpu8", "--bmc-username", "maas"];
  const { out, err, code } = await runAgainst(routes, ["fleet", "onboard", ...common, "--file", file, "--dry-run"]);
  expect(code).toBe(4);
  expect(asked).toEqual([
    { hostname: "gpu-1", bmcUsername: "maas" },
    { hostname: "gpu-2", bmcUsername: "root" },
  ]);
  expect(out).toContain("a new one would be registered");
  expect(out).toContain("the name is taken");
  expect(err).toContain("nothing was started or changed; 1 of 2 nodes would be refused or fail");
});
