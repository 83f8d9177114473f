import { join } from "node:path";
import { root, runTool } from "../run-tool.ts";

/** The contract as it last landed: clients were built against it. `npm run contract:land` renews it. */
export const LANDED_CONTRACT = join(root, "proto", "landed.binpb");

/** What breaks clients of the landed contract, line by line. Additions break nobody. `folder` holds `buf.yaml` and `proto/`. */
export async function findBreakingChanges(folder: string): Promise<readonly string[]> {
  const { code, output } = await runTool("buf", ["breaking", folder, "--against", LANDED_CONTRACT]);
  if (code === 0) return [];
  return [
    ...output.trimEnd().split("\n"),
    "Add a field, method or value beside the one that clients use, and keep both.",
  ];
}
