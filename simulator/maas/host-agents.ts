import type { SimulatedClock } from "../simulated-clock.ts";
import type { StateJournal } from "../state-journal.ts";
import { type AgentIdentity, type AgentOrders, runAgent, type SessionEnd } from "./agent-session.ts";
import type { MachineRecord } from "./machine-record.ts";
import type { Region } from "./region.ts";
import * as status from "./statuses.ts";

/** In real time: how often it is looked for servers that have come up, or have gone. */
const LOOKS_EVERY_MS = 250;
const STARTS_AGAIN_MS = 1_000;
/** Simulated time that a task takes. */
const TASK_MS = 10_000;
const AGENT = "maas/agent/";

/** What an agent keeps on the disk of the deployed system: another deployment begins with nothing. */
interface Disk {
  readonly deployedAt: number | null;
  readonly identity?: AgentIdentity;
  readonly end?: "uninstalled" | "refused";
}

interface Running {
  readonly deployedAt: number | null;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

/** The systems that MAAS has installed on its servers, as far as they run the agent that their user data told them to run. */
export class HostAgents {
  readonly #region: Region;
  readonly #journal: StateJournal;
  readonly #clock: SimulatedClock;
  readonly #log: (line: string) => void;
  readonly #running = new Map<string, Running>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: {
    readonly region: Region;
    readonly journal: StateJournal;
    readonly clock: SimulatedClock;
    readonly log: (line: string) => void;
  }) {
    this.#region = options.region;
    this.#journal = options.journal;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#timer = setInterval(() => this.#look(), LOOKS_EVERY_MS);
    // A system ends with its release: until the next look its agent would still take tasks.
    this.#region.onSaved = (machine) => this.#endUnless(machine.systemId, isUp(machine) ? machine : undefined);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    for (const { stop } of this.#running.values()) stop.abort();
    await Promise.allSettled([...this.#running.values()].map(({ ended }) => ended));
  }

  #look(): void {
    const up = new Map(
      this.#region
        .machines()
        .filter(isUp)
        .map((machine) => [machine.systemId, machine]),
    );
    for (const systemId of [...this.#running.keys()]) this.#endUnless(systemId, up.get(systemId));
    for (const machine of up.values()) if (!this.#running.has(machine.systemId)) this.#start(machine);
  }

  /** Ends the agent of this server, unless the system that it belongs to is up. */
  #endUnless(systemId: string, up: MachineRecord | undefined): void {
    const running = this.#running.get(systemId);
    if (running === undefined || up?.deployedAt === running.deployedAt) return;
    running.stop.abort();
    this.#running.delete(systemId);
  }

  #start(machine: MachineRecord): void {
    const { systemId, deployedAt } = machine;
    const orders = ordersIn(machine.userData ?? "");
    if (orders === undefined) return;
    const stop = new AbortController();
    const ended = this.#live(machine, orders, stop.signal).catch((error: unknown) => {
      if (!stop.signal.aborted) this.#log(`agent of ${orders.node}: ${String(error)}`);
    });
    this.#running.set(systemId, { deployedAt, stop, ended });
  }

  /** The service manager starts an agent again that has died. */
  async #live(machine: MachineRecord, orders: AgentOrders, signal: AbortSignal): Promise<void> {
    const { systemId, deployedAt } = machine;
    const disk = (): Disk => {
      const kept = this.#journal.get(AGENT + systemId) as Disk | undefined;
      return kept?.deployedAt === deployedAt ? kept : { deployedAt };
    };
    const keep = (change: Partial<Disk>) => this.#journal.put(AGENT + systemId, { ...disk(), ...change });
    while (!signal.aborted && disk().end === undefined) {
      const end: SessionEnd = await runAgent({
        ...{ orders, identity: disk().identity, signal, log: this.#log },
        keep: (identity) => keep({ identity }),
        goesWrong: (fault) => this.#region.goesWrong(fault, machine),
        taskMs: TASK_MS / this.#clock.speed,
      });
      if (end === "uninstalled" || end === "refused") keep({ end });
      if (end === "dead") await new Promise((resolve) => setTimeout(resolve, STARTS_AGAIN_MS));
    }
  }
}

const isUp = ({ status: is, power, userData }: MachineRecord): boolean =>
  is === status.DEPLOYED && power === "on" && userData !== null;

const NODE_FILE = "/etc/millwright-agent/node.json";
const TOKEN_FILE = "/etc/millwright-agent/enrolment-token";

/** As cloud-init would: of one document, or of an archive of several, what the files say that the agent reads. */
function ordersIn(userData: string): AgentOrders | undefined {
  const text = Buffer.from(userData, "base64").toString("utf8");
  for (const document of documentsOf(text)) {
    if (!document.startsWith("#cloud-config\n{")) continue;
    try {
      const { write_files: files } = JSON.parse(document.slice("#cloud-config\n".length)) as {
        write_files?: readonly { path: string; content: string }[];
      };
      const contentOf = (path: string) => files?.find((file) => file.path === path)?.content;
      const [node, token] = [contentOf(NODE_FILE), contentOf(TOKEN_FILE)];
      if (node !== undefined && token !== undefined) return { ...JSON.parse(node), token: token.trim() };
    } catch {
      // Another document of cloud-init that only begins like ours.
    }
  }
  return undefined;
}

function documentsOf(text: string): readonly string[] {
  const boundary = /^Content-Type: multipart\/mixed; boundary="([^"]+)"/.exec(text)?.[1];
  if (boundary === undefined) return [text];
  return text.split(`--${boundary}`).flatMap((part) => {
    const [head = "", body] = part.split(/\n\n(.*)/s);
    if (body === undefined) return [];
    return /base64/i.test(head) ? [Buffer.from(body, "base64").toString("utf8")] : [body];
  });
}
