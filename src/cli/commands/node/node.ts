import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, type Question, YES_OPTION } from "../../terminal/confirm.ts";
import { addListOptions, type ListOptions } from "../options/list-options.ts";

export interface MoveOptions extends ConfirmOptions {
  readonly comment?: string;
  readonly force?: boolean;
  readonly workflow?: string;
  readonly replacement?: string;
  /** The state that the verb is for, where others lead to the same one. */
  readonly from?: string | undefined;
  readonly asks?: ((id: string) => Question) | undefined;
}

/** Of the verbs that let a node install. None does another's work: a wrong id would cost a machine its disks. */
const FROM: Readonly<Record<string, string>> = {
  approve: "discovered",
  requeue: "reprovision",
  retry: "install_failed",
};

/** Of the verbs that cannot be undone: what people say yes to. */
const ASKS: Readonly<Record<string, (id: string) => Question>> = {
  // It is active until then: the operator types its name, since it may be in use.
  deprovision: (id) => ({ what: `Erase all disks of node ${id} at its next boot, and retire it?`, answer: id }),
  confirmErased: (id) => ({ what: `Vouch that all disks of node ${id} are erased, and retire it?`, answer: id }),
  retire: (id) => ({ what: `Take node ${id} out for good?` }),
};

/** Verbs of people, and the state that each leads to. */
const VERBS = [
  ["approve", "pending", "let a discovered node install at its next boot from the network"],
  ["activate", "active", "record that an installed node is verified and in production"],
  ["reprovision", "reprovision", "mark an active node for reinstallation"],
  ["requeue", "pending", "let a node that is marked for reinstallation install at its next boot"],
  ["deprovision", "deprovisioning", "erase an active node's disks at its next boot, then retire it"],
  ["retire", "retired", "take a node out for good"],
] as const;

const load = () => import("./manage.ts");

export function addNodeCommands(program: Command, run: Run): void {
  const node = program.command("node").description("nodes: machines that install over the network");
  addReading(node, run);
  addChanging(node, run);
  addMoving(node, run);
}

function addReading(node: Command, run: Run): void {
  addListOptions(node.command("list").description("list nodes"), {
    filter: "state=install_failed AND (tag=gpu OR hostname^=rack1)",
    order: "state, last_seen_at desc",
  })
    .option("--state <state>", "only those in this state")
    .option("--group <group>", "only those of this group, by id or name")
    .option("--tag <tag>", "only those with this tag")
    .action((options: ListOptions & { state?: string; group?: string; tag?: string }) =>
      run(async (session) => (await load()).listNodes(session, options)),
    );
  node
    .command("show")
    .argument("<id>", "a node: the id of its machine")
    .description("show a node with its latest history")
    .action((id: string) => run(async (session) => (await load()).showNode(session, id)));
  node
    .command("history")
    .argument("<id>", "a node")
    .description("list a node's transitions, newest first")
    .option("--limit <n>", "at most so many", "50")
    .action((id: string, { limit }: { limit: string }) =>
      run(async (session) => (await load()).listNodeHistory(session, id, limit)),
    );
  node
    .command("stalled")
    .description("list nodes that have been installing for longer than an attempt may take (install.timeout)")
    .action(() => run(async (session) => (await load()).listStalledNodes(session)));
  node
    .command("stats")
    .description("count nodes by state")
    .action(() => run(async (session) => (await load()).showNodeStats(session)));
}

function addChanging(node: Command, run: Run): void {
  node
    .command("register")
    .description("put a node on record before it has booted")
    .requiredOption("--mac <address>", "the address that it boots with")
    .option("--hostname <name>", "its name")
    .option("--arch <arch>", "x86_64, arm64 or aarch64")
    .option("--boot-mode <mode>", "bios or uefi")
    .option("--group <group>", "its group, by id or name")
    .action((options: Readonly<Record<string, string>>) =>
      run(async (session) => (await load()).registerNode(session, options)),
    );
  node
    .command("set")
    .argument("<id>", "a node")
    .description("change a node; an empty value clears a field")
    .option("--workflow <id>", "what it is installed with")
    .option("--group <group>", "its group, by id or name")
    .option("--hostname <name>", "its name")
    .action((id: string, options: Readonly<Record<string, string>>) =>
      run(async (session) => (await load()).setNode(session, id, options)),
    );
  for (const [verb, description] of [
    ["tag", "add a tag to a node"],
    ["untag", "remove a tag from a node"],
  ] as const) {
    node
      .command(verb)
      .argument("<id>", "a node")
      .argument("<tag>", "the tag")
      .description(description)
      .action((id: string, tag: string) => run(async (session) => (await load()).changeTag(session, verb, id, tag)));
  }
}

function addMoving(node: Command, run: Run): void {
  for (const [verb, state, description] of VERBS) {
    const command = node.command(verb).argument("<id>", "a node").description(description);
    command.option("--comment <text>", "why; kept in the history");
    if (verb === "approve" || verb === "requeue")
      command.option("--workflow <id>", "what it is installed with; its own or its group's when left out");
    const asks = ASKS[verb];
    if (asks !== undefined) command.option(...YES_OPTION);
    command.action((id: string, options: MoveOptions) =>
      run(async (session) => (await load()).moveNode(session, id, state, { ...options, from: FROM[verb], asks })),
    );
  }
  node
    .command("retry")
    .argument("<id>", "a node whose install failed")
    .description("let a node whose install failed three times try again")
    .option("--workflow <id>", "with another workflow")
    .option("--force", "required after three failures: resets the counter")
    .option("--comment <text>", "why; kept in the history")
    .action((id: string, options: MoveOptions) =>
      run(async (session) => (await load()).moveNode(session, id, "pending", { ...options, from: FROM.retry })),
    );
  node
    .command("arm")
    .argument("<ids...>", "nodes that wait for a boot")
    .description("expect nodes to boot from the network from now on, where the time for that has run out")
    .action((ids: readonly string[]) => run(async (session) => (await load()).armNodes(session, ids)));
  node
    .command("confirm-erased")
    .argument("<id>", "a node that is deprovisioning")
    .description("vouch that a node's disks are erased where no boot of it could prove that, and retire it")
    .option("--comment <text>", "how you know; kept in the history")
    .option(...YES_OPTION)
    .action((id: string, options: MoveOptions) =>
      run(async (session) => (await load()).confirmErased(session, id, { ...options, asks: ASKS.confirmErased })),
    );
  node
    .command("migrate")
    .argument("<id>", "an active node")
    .description("replace an active node by another machine")
    .requiredOption("--replacement <id>", "the machine that replaces it")
    .option("--comment <text>", "why; kept in the history")
    .action((id: string, options: MoveOptions) =>
      run(async (session) => (await load()).moveNode(session, id, "migrating", options)),
    );
}
