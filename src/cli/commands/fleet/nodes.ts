import { randomUUID } from "node:crypto";
import {
  type FleetBootstrap,
  type FleetNode,
  type FleetNodeDetail,
  FleetNodeService,
  type PreviewNodeMoveResponse,
} from "../../../../contract/millwright/v1/fleet_node_pb.js";
import { EXIT, UsageError } from "../../client/errors.ts";
import { followEvents } from "../../client/events.ts";
import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import { confirm } from "../../terminal/confirm.ts";
import { printDone, printList } from "../../terminal/printing.ts";
import { type PasswordOptions, readBmcPassword } from "../../terminal/secret-input.ts";
import { isoTime } from "../../terminal/times.ts";
import { actOnEach, type Done, type Verb } from "../device/many.ts";
import type { Chosen } from "../device/many-options.ts";
import { type ListOptions, limitOf, printTotal } from "../options/list-options.ts";
import { nodeColumns, nodeJson, printDetail } from "./node-view.ts";

const PAGE_SIZE = 500;

export interface OnboardOptions extends PasswordOptions {
  readonly file?: string;
  readonly site?: string;
  readonly profile?: string;
  readonly sku?: string;
  readonly hostname?: string;
  readonly ipmiIp?: string;
  readonly mode?: string;
  readonly bmcUsername?: string;
  readonly requestId?: string;
  readonly wait?: boolean;
  readonly dryRun?: boolean;
}

/** Empty where none is given: then the account that is on record stays. */
export async function readAccount(session: Session, options: OnboardOptions) {
  const { bmcUsername = "", bmcPasswordFile, bmcPasswordStdin } = options;
  if (bmcUsername !== "")
    return { bmcUsername, bmcPassword: (await readBmcPassword(session, options, "required")) ?? "" };
  if (bmcPasswordFile === undefined && !bmcPasswordStdin) return { bmcUsername, bmcPassword: "" };
  throw new UsageError("--bmc-username is needed with a BMC password");
}

/** What every node needs, unless a file says it of each. */
const REQUIRED = ["site", "profile", "sku", "hostname"] as const;

export async function onboard(session: Session, options: OnboardOptions): Promise<number | undefined> {
  if (options.file !== undefined)
    return (await import("./onboard-file.ts")).onboardFile(session, options.file, options);
  const missing = REQUIRED.find((name) => options[name] === undefined);
  if (missing !== undefined) throw new UsageError(`--${missing} is required`, "or --file with many nodes");
  const { ipmiIp = "", mode = "", requestId = randomUUID(), wait = false } = options;
  const { site = "", profile = "", sku = "", hostname = "" } = options;
  if (options.dryRun) {
    const asked = { site, profile, sku, hostname, ipmiIp, mode, bmcUsername: options.bmcUsername ?? "" };
    return (await import("./onboarding-preview.ts")).previewOnboarding(session, asked);
  }
  const account = await readAccount(session, options);
  const client = await session.client(FleetNodeService);
  const { node, bootstrap } = await client.onboardNode(
    { site, profile, sku, hostname, ipmiIp, mode, requestId, ...account },
    { signal: session.signal },
  );
  if (!node) return undefined;
  if (bootstrap) {
    await printBootstrap(session, node.node?.id ?? "", bootstrap);
    return undefined;
  }
  const shown = wait ? await untilEnded(session, node) : node;
  await printDetail(session, shown);
  return wait ? exitOf(shown) : undefined;
}

const ENDED = new Set(["completed", "reconciled", "cancelled", "failed_retryable", "failed_manual_intervention"]);
const SUCCEEDED = new Set(["completed", "reconciled"]);
const hasEnded = ({ job }: FleetNodeDetail): boolean => job === undefined || ENDED.has(job.state);
/** A cancel that was asked for has come to a good end where the job is cancelled. */
const exitOf = ({ job }: FleetNodeDetail, word = ""): number | undefined =>
  job === undefined || SUCCEEDED.has(job.state) || (word === "cancel" && job.state === "cancelled")
    ? undefined
    : EXIT.operationFailed;

/** Until the job that it has now has ended; it goes on also when nobody waits. */
async function untilEnded(session: Session, detail: FleetNodeDetail): Promise<FleetNodeDetail> {
  const runId = detail.job?.runId;
  if (runId === undefined || hasEnded(detail)) return detail;
  let now = detail;
  for await (const _ of followEvents(session, { kinds: ["run"], ids: [runId], from: "now" }, session.signal)) {
    now = await read(session, detail.node?.id ?? "");
    if (now.job?.runId !== runId || hasEnded(now)) break;
  }
  return now;
}

async function read(session: Session, node: string): Promise<FleetNodeDetail> {
  const client = await session.client(FleetNodeService);
  const { node: detail } = await client.getFleetNode({ node }, { signal: session.signal });
  if (!detail) throw new Error(`the server did not answer with node ${node}`);
  return detail;
}

export interface ListNodesOptions extends ListOptions {
  readonly all?: boolean;
}

export async function listNodes(session: Session, options: ListNodesOptions): Promise<undefined> {
  const { items, total } = await readNodes(session, options);
  await printList(session, { items, columns: nodeColumns, json: nodeJson }, "No fleet nodes.");
  printTotal(session, items.length, total);
}

async function readNodes(session: Session, options: ListNodesOptions) {
  const client = await session.client(FleetNodeService);
  const limit = limitOf(options);
  const query = {
    pageSize: Math.min(limit ?? PAGE_SIZE, PAGE_SIZE),
    filter: options.filter ?? "",
    orderBy: options.orderBy ?? "hostname",
    withDeleted: options.all ?? false,
  };
  let total: number | undefined;
  const items = await readPages(
    async (pageToken) => {
      const withTotal = (options.total ?? false) && pageToken === "";
      const page = await client.listFleetNodes({ ...query, pageToken, withTotal }, { signal: session.signal });
      total ??= page.totalSize;
      return page;
    },
    ({ nodes }): readonly FleetNode[] => nodes,
    limit,
  );
  return { items, total };
}

export async function showNode(session: Session, nodes: readonly string[]): Promise<undefined> {
  for (const node of nodes) await printDetail(session, await read(session, node));
}

/** How nodes are chosen by a filter. */
export const chooserOf = (session: Session, word: string): Omit<Verb, "act"> => ({
  ...{ word, noun: "node", nouns: "nodes" },
  list: async (filter) => (await readNodes(session, { filter })).items.map(({ id }) => id),
});

/** What is done with several nodes, one after the other. */
const verbOf = (session: Session, word: string, act: Verb["act"]): Verb => ({ ...chooserOf(session, word), act });

const VERBS = {
  quarantine: { rpc: "quarantineNode", move: "quarantine", done: "is quarantined" },
  recover: { rpc: "recoverNode", move: "recover", done: "is recovered" },
  reactivate: {
    rpc: "reactivateNode",
    move: "reactivate",
    done: "is back in the fleet, offline until its agent is heard of",
  },
  "drain abort": { rpc: "abortDrain", move: "drain-abort", done: "is drained no further" },
  "remove rollback": { rpc: "rollbackRemoval", move: "remove-rollback", done: "is not removed" },
} as const;
export type NodeWord = keyof typeof VERBS;

export interface MoveOptions extends Chosen {
  readonly comment?: string;
  readonly dryRun?: boolean;
}

export const moveNodes = async (
  session: Session,
  word: NodeWord,
  options: MoveOptions,
): Promise<number | undefined> => {
  const { rpc, move, done } = VERBS[word];
  const client = await session.client(FleetNodeService);
  if (options.dryRun) {
    const act = async (node: string): Promise<Done> => {
      const request = { node, move, comment: options.comment ?? "" };
      const preview = await client.previewNodeMove(request, { signal: session.signal });
      return wouldBe(node, preview);
    };
    // Nothing is done, so that nobody is asked first.
    return actOnEach(session, verbOf(session, word, act), { ...options, yes: true });
  }
  const act = async (node: string): Promise<Done> => {
    const { node: detail } = await client[rpc]({ node, comment: options.comment ?? "" }, { signal: session.signal });
    return doneOf(node, detail, done);
  };
  return actOnEach(session, verbOf(session, word, act), options);
};

function wouldBe(asked: string, { node, toState, notes }: PreviewNodeMoveResponse): Done {
  const { hostname = asked, id = asked, state = "" } = node ?? {};
  const sentence = [`Dry run: node ${hostname} would go ${state} → ${toState}`, ...notes].join("; ");
  return { sentence: `${sentence}.`, facts: { node: id, hostname, state, to_state: toState, notes } };
}

function doneOf(node: string, detail: FleetNodeDetail | undefined, done: string): Done {
  const { hostname = node, id = node, state = "" } = detail?.node ?? {};
  const job = detail?.job;
  return {
    sentence: `Node ${hostname} ${done}: ${state}.`,
    facts: { node: id, hostname, state, ...(job && { run: job.runId, workflow_state: job.state }) },
  };
}

export interface JobOptions extends Chosen {
  readonly wait?: boolean;
  readonly comment?: string;
}

/** Each is started before any is waited for where several are named: a job of one keeps no other from beginning. */
async function withJob(
  session: Session,
  word: string,
  options: JobOptions,
  start: (node: string) => Promise<FleetNodeDetail | undefined>,
): Promise<number | undefined> {
  const started: FleetNodeDetail[] = [];
  const act = async (node: string): Promise<Done> => {
    const detail = await start(node);
    if (detail) started.push(detail);
    const state = detail?.job?.state ?? "";
    return doneOf(node, detail, `has its ${detail?.job?.type ?? "job"} ${state}, run ${detail?.job?.runId ?? ""}`);
  };
  const refused = await actOnEach(session, verbOf(session, word, act), options);
  if (!options.wait) return refused;
  const exits: (number | undefined)[] = [refused];
  for (const detail of started) {
    const ended = await untilEnded(session, detail);
    await printDetail(session, ended);
    exits.push(exitOf(ended, word));
  }
  return exits.find((exit) => exit !== undefined);
}

/** Nodes that a filter chooses are asked about with the filter. */
async function askFirst(session: Session, what: string, { ids, yes = false, filter }: JobOptions): Promise<void> {
  if (!yes && filter === undefined && ids.length > 0) await confirm(session, { what: `${what} ${ids.join(", ")}?` });
}

export interface DecommissionOptions extends JobOptions {
  readonly mode: string;
  readonly agentGone?: boolean;
  readonly liftQuarantine?: boolean;
  readonly dryRun?: boolean;
}

export async function decommission(session: Session, options: DecommissionOptions): Promise<number | undefined> {
  const { mode, agentGone = false, liftQuarantine = false } = options;
  if (options.dryRun) return (await import("./decommission-preview.ts")).previewDecommissions(session, options);
  await askFirst(session, `Decommission by ${mode}`, options);
  const client = await session.client(FleetNodeService);
  return withJob(session, "decommission", options, async (node) => {
    const request = { node, mode, agentGone, liftQuarantine, requestId: randomUUID() };
    return (await client.decommissionNode(request, { signal: session.signal })).node;
  });
}

export async function retire(
  session: Session,
  options: JobOptions & { readonly dryRun?: boolean },
): Promise<number | undefined> {
  if (options.dryRun)
    return (await import("./decommission-preview.ts")).previewDecommissions(session, { ...options, mode: "retire" });
  await askFirst(session, "Drain and retire", options);
  const client = await session.client(FleetNodeService);
  return withJob(session, "retire", options, async (node) => {
    const request = { node, requestId: randomUUID(), comment: options.comment ?? "" };
    return (await client.retireNode(request, { signal: session.signal })).node;
  });
}

/** The words of the command are nodes, and then the action. */
export async function act(
  session: Session,
  words: readonly string[],
  options: Omit<JobOptions, "ids">,
): Promise<number | undefined> {
  const action = words.at(-1) ?? "";
  const nodes = words.slice(0, -1);
  if (nodes.length === 0 && options.filter === undefined)
    throw new UsageError(
      "fleet action takes nodes and then an action",
      "such as millwright fleet action gpu-17 retry-stage",
    );
  const client = await session.client(FleetNodeService);
  return withJob(session, action, { ...options, ids: nodes }, async (node) => {
    const request = { node, action, requestId: randomUUID(), comment: options.comment ?? "" };
    return (await client.actOnNode(request, { signal: session.signal })).node;
  });
}

async function printBootstrap(session: Session, node: string, bootstrap: FleetBootstrap): Promise<void> {
  const { command, expiresAt } = bootstrap;
  const until = isoTime(expiresAt);
  const sentence = `Run this on the host, as a user who may use sudo, before ${until}. It holds a password:\n${command}`;
  await printDone(session, sentence, { node, command, expires_at: until });
}

/** Each gets a command of its own. */
export async function reissue(session: Session, nodes: readonly string[]): Promise<undefined> {
  const client = await session.client(FleetNodeService);
  for (const node of nodes) {
    const { bootstrap } = await client.reissueBootstrap({ node }, { signal: session.signal });
    if (bootstrap) await printBootstrap(session, node, bootstrap);
  }
}
