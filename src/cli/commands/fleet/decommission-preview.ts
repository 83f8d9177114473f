import { FleetNodeService } from "../../../../contract/millwright/v1/fleet_node_pb.js";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { printList } from "../../terminal/printing.ts";
import { chosenIds } from "../device/many.ts";
import { chooserOf, type DecommissionOptions } from "./nodes.ts";

interface PreviewedStage {
  readonly node: string;
  readonly stage: string;
  readonly note: string;
}

const columns: readonly Column<PreviewedStage>[] = [
  { title: "NODE", cell: ({ node }) => node },
  { title: "STAGE", cell: ({ stage }) => stage },
  { title: "NOTE", cell: ({ note }) => note },
];

/** What decommissions would come through as things are now. */
export async function previewDecommissions(session: Session, options: DecommissionOptions): Promise<undefined> {
  const { mode, agentGone = false, liftQuarantine = false } = options;
  const client = await session.client(FleetNodeService);
  const items: PreviewedStage[] = [];
  // Nothing is done, so that nobody is asked first.
  for (const node of await chosenIds(session, chooserOf(session, mode), { ...options, yes: true })) {
    const { stages, allocations } = await client.previewDecommission(
      { node, mode, agentGone, liftQuarantine },
      { signal: session.signal },
    );
    const used = allocations.length === 0 ? "" : `in use by ${allocations.join(", ")}`;
    for (const { stage, skipped } of stages) {
      const note =
        skipped !== "" ? `skipped: ${skipped}` : stage === "drain_node" || stage.startsWith("force_") ? used : "";
      items.push({ node, stage, note });
    }
  }
  await printList(session, { items, columns, json: (item) => ({ ...item }) }, "No stages.");
}
