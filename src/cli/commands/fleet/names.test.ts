import { describe, expect, test } from "vitest";
import { ExplainService } from "../../../../contract/millwright/v1/explain_pb.js";
import { FleetNodeService } from "../../../../contract/millwright/v1/fleet_node_pb.js";
import { HistoryService } from "../../../../contract/millwright/v1/history_pb.js";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

describe("a fleet node", () => {
  test.each([
    ["explain fleet-node gpu-07", ["lab/gpu-07"]],
    ["history fleet_node gpu-07", ["lab/gpu-07"]],
    ["explain fleet-node fn-0123", []],
    ["history fleet_node fn-0123", []],
  ])("%s finds it by its host name as well", async (line, looked) => {
    const [named, asked]: [string[], { kind: string; id: string }[]] = [[], []];
    await runAgainst(
      (router) => {
        router.service(FleetNodeService, {
          getFleetNode({ node }) {
            named.push(node);
            return { node: { node: { id: "fn-0123" } } };
          },
        });
        router.service(ExplainService, {
          explain({ kind, id }) {
            asked.push({ kind, id });
            return {};
          },
        });
        router.service(HistoryService, {
          listHistory({ kind, id }) {
            asked.push({ kind, id });
            return { events: [{ type: "created" }] };
          },
        });
      },
      line.replace("gpu-07", "lab/gpu-07"),
    );
    expect({ named, asked }).toEqual({ named: looked, asked: [{ kind: "fleet_node", id: "fn-0123" }] });
  });
});
