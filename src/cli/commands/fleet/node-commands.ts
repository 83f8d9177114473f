import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { YES_OPTION } from "../../terminal/confirm.ts";
import { FILTER_OPTION, YES_TO_FILTER } from "../device/many-options.ts";
import { addListOptions, type ListOptions } from "../options/list-options.ts";
import { addPasswordOptions } from "../options/password-options.ts";
import type {
  DecommissionOptions,
  JobOptions,
  ListNodesOptions,
  MoveOptions,
  NodeWord,
  OnboardOptions,
} from "./nodes.ts";

const NODES = ["[nodes...]", "their ids or host names"] as const;
const COMMENT = ["--comment <text>", "kept in the history"] as const;
const WAIT = ["--wait", "wait for the end of the job; the exit code tells it"] as const;
const DRY_RUN = ["--dry-run", "show what would be done or is in the way, and change nothing"] as const;
const FILTER = "such as 'site=lab AND state=offline'";

/** The nodes of the fleet themselves. */
export function addNodeCommands(fleet: Command, run: Run): void {
  addReading(fleet, run);
  addTasks(fleet, run);
  addJobs(fleet, run);
  addMoves(fleet, run);
}

const load = () => import("./nodes.ts");

function addReading(fleet: Command, run: Run): void {
  addListOptions(fleet.command("list").description("list nodes with the coarse words of their states"), {
    filter: "state=quarantined AND site=lab",
    order: "site, hostname",
  })
    .option("--all", "also nodes that were removed")
    .addHelpText("after", "\nExample:\n  millwright fleet list --filter state=quarantined")
    .action((options: ListNodesOptions) => run(async (session) => (await load()).listNodes(session, options)));
  fleet
    .command("show")
    .argument("<nodes...>", "their ids or host names")
    .description("show a node: its workflow, stage, attempt, failure class, what MAAS shows, and what to do next")
    .addHelpText("after", "\nExample:\n  millwright fleet show gpu-17")
    .action((nodes: string[]) => run(async (session) => (await load()).showNode(session, nodes)));
}

function addTasks(fleet: Command, run: Run): void {
  addListOptions(
    fleet
      .command("tasks")
      .argument("[node]", "its id or host name; of all nodes where none is named")
      .description("list what agents of nodes were asked to do, and what came of it; the newest first"),
    { filter: "'state IN (failed, expired)'", order: "'hostname, created_at desc'" },
  )
    .addHelpText("after", "\nExample:\n  millwright fleet tasks gpu-17")
    .action((node: string | undefined, options: ListOptions) =>
      run(async (session) => (await import("./tasks.ts")).listTasks(session, node, options)),
    );
}

function addJobs(fleet: Command, run: Run): void {
  const onboard = fleet
    .command("onboard")
    .description("put a node on record with its machine, and bring it up")
    .option("--site <site>", "a site on record")
    .option("--profile <profile>", "a profile of the site")
    .option("--sku <sku>", "the product that it is sold as")
    .option("--hostname <name>", "its host name")
    .option("--ipmi-ip <address>", "IP address of its management controller (BMC)")
    .option("--bmc-username <name>", "account at the BMC that MAAS uses; required for a machine without one on record")
    .option("--mode <mode>", "maas, or manual: its owner runs a command on it", "maas")
    .option(
      "-f, --file <file>",
      "CSV with many nodes: site, profile, sku, hostname, ipmi_ip, mode, bmc_username, bmc_password; - for standard input",
    )
    .option("--request-id <id>", "the same again for the same request")
    .option("--dry-run", "show what would be done and what is in the way, and write nothing")
    .option(...WAIT)
    .addHelpText(
      "after",
      "\nExample:\n  millwright fleet onboard --site lab --profile h100 --sku gpu8 --hostname gpu-17 --ipmi-ip 10.0.0.17 --bmc-username maas --bmc-password-file password --wait\n  millwright fleet onboard --site lab --profile h100 --sku gpu8 --file nodes.csv --wait",
    )
    .action((options: OnboardOptions) => run(async (session) => (await load()).onboard(session, options)));
  addPasswordOptions(onboard);
  fleet
    .command("action")
    .argument(
      "<words...>",
      "nodes, and then retry-stage, resume, rerun, restart-clean, cancel, adopt-observed-state or mark-manual",
    )
    .description("act on the latest job of nodes")
    .option(FILTER_OPTION, FILTER)
    .option(...YES_TO_FILTER)
    .option("--comment <text>", "who sees to it, and why; for mark-manual")
    .option(...WAIT)
    .addHelpText("after", "\nExample:\n  millwright fleet action gpu-17 retry-stage --wait")
    .action((words: string[], options: Omit<JobOptions, "ids">) =>
      run(async (session) => (await load()).act(session, words, options)),
    );
  fleet
    .command("decommission")
    .argument(...NODES)
    .description("clean, reimage or remove nodes")
    .requiredOption("--mode <mode>", "soft_reset, reimage, full_decommission or storage_cleanup")
    .option("--agent-gone", "do not ask the agent, which will not answer any more; where MAAS erases the disks")
    .option("--lift-quarantine", "end the quarantine of nodes once they are validated")
    .option("--dry-run", "show the stages, and start nothing")
    .option(FILTER_OPTION, FILTER)
    .option(...YES_OPTION)
    .option(...WAIT)
    .addHelpText("after", "\nExample:\n  millwright fleet decommission gpu-17 --mode storage_cleanup --wait")
    .action((ids: string[], options: Omit<DecommissionOptions, "ids">) =>
      run(async (session) => (await load()).decommission(session, { ...options, ids })),
    );
  fleet
    .command("retire")
    .argument(...NODES)
    .description("drain nodes and take them out of scheduling; they keep their identity")
    .option(FILTER_OPTION, FILTER)
    .option(...YES_OPTION)
    .option(...COMMENT)
    .option(...DRY_RUN)
    .option(...WAIT)
    .action((ids: string[], options: Omit<JobOptions, "ids">) =>
      run(async (session) => (await load()).retire(session, { ...options, ids })),
    );
}

function addMoves(fleet: Command, run: Run): void {
  const add = (
    parent: Command,
    name: string,
    word: NodeWord,
    description: string,
    comment: readonly [string, string] = COMMENT,
  ) =>
    parent
      .command(name)
      .argument(...NODES)
      .description(description)
      .option(FILTER_OPTION, FILTER)
      .option(...YES_TO_FILTER)
      .option(...comment)
      .option(...DRY_RUN)
      .action((ids: string[], options: Omit<MoveOptions, "ids">) =>
        run(async (session) => (await load()).moveNodes(session, word, { ...options, ids })),
      );
  add(fleet, "reactivate", "reactivate", "take retired nodes back: offline, until their agents are heard of");
  add(fleet, "quarantine", "quarantine", "keep nodes from being scheduled on", [
    "--comment <text>",
    "why; required, and shown until somebody recovers the node",
  ]);
  add(fleet, "recover", "recover", "lift the quarantine of nodes that are healthy again");
  fleet
    .command("bootstrap")
    .description("commands by which manual nodes enrol")
    .command("reissue")
    .argument("<nodes...>", "their ids or host names")
    .description("print another bootstrap command; the previous one stops working")
    .action((nodes: string[]) => run(async (session) => (await load()).reissue(session, nodes)));
  const drain = fleet.command("drain").description("drains that are under way");
  add(drain, "abort", "drain abort", "end drains short of retirement");
  const remove = fleet.command("remove").description("removals that are under way");
  add(remove, "rollback", "remove rollback", "end removals: the nodes are retired again");
}
