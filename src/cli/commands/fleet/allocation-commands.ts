import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";
import type { ListAllocationsOptions } from "./allocations.ts";

const ALLOCATION = ["<allocation>", "the id of an allocation"] as const;

/** Who uses fleet nodes. */
export function addAllocationCommands(fleet: Command, run: Run): void {
  const load = () => import("./allocations.ts");
  const allocation = fleet.command("allocation").description("who uses nodes, or is about to");
  allocation
    .command("list")
    .description("list allocations")
    .option("--node <node>", "of this node, by its id or host name")
    .option("--state <state>", "in this state, such as release_failed")
    .option("--tenant <tenant>", "of this tenant")
    .addHelpText("after", "\nExample:\n  millwright fleet allocation list --state release_failed")
    .action((options: ListAllocationsOptions) =>
      run(async (session) => (await load()).listAllocations(session, options)),
    );
  allocation
    .command("show")
    .argument(...ALLOCATION)
    .description("show an allocation")
    .action((id: string) => run(async (session) => (await load()).showAllocation(session, id)));
  allocation
    .command("request")
    .argument("<node>", "an active node, by its id or host name")
    .description("ask for the use of a node")
    .requiredOption("--tenant <tenant>", "whom it is for")
    .option("--request-id <id>", "the same request again gets the same allocation; made up unless given")
    .addHelpText("after", "\nExample:\n  millwright fleet allocation request gpu-17 --tenant team-a")
    .action((node: string, options: { tenant: string; requestId?: string }) =>
      run(async (session) => (await load()).requestAllocation(session, node, options)),
    );
  allocation
    .command("release")
    .argument(...ALLOCATION)
    .description("end the use of a node")
    .action((id: string) => run(async (session) => (await load()).releaseAllocation(session, id)));
  allocation
    .command("force-release")
    .argument(...ALLOCATION)
    .description("end the use of a node without waiting for its user; also one that could not be released")
    .option(...YES_OPTION)
    .action((id: string, options: ConfirmOptions) =>
      run(async (session) => (await load()).forceReleaseAllocation(session, id, options)),
    );
}
