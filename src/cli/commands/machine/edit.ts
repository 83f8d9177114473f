import { clone, create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  JumpHostSchema,
  type Machine,
  MachineSchema,
  MachineService,
  type MachineSpec,
  MachineSpecSchema,
} from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { UsageError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { printLine, printOne } from "../../terminal/printing.ts";
import { readDocument } from "../document/document-file.ts";
import { machineThing, phaseOf } from "./view.ts";

export interface MachineFields {
  readonly mac?: readonly string[];
  readonly serial?: string;
  readonly rack?: string;
  readonly slot?: string;
  readonly location?: string;
  readonly customer?: string;
  readonly cluster?: string;
  readonly provider?: string;
  readonly bmcEndpoint?: string;
  readonly bmcProtocol?: string;
  readonly tlsTrust?: string;
  readonly sshEndpoint?: string;
  readonly sshHostKey?: string;
  readonly jumpHost?: readonly string[];
  readonly label?: readonly string[];
}

export interface RegisterOptions extends MachineFields {
  readonly id?: string;
  readonly file?: string;
}

/** What a file says, with what the options say on top. */
export async function registerMachine(session: Session, options: RegisterOptions): Promise<undefined> {
  if (Object.values(options).every((given) => given === undefined))
    throw new UsageError(
      "no field of the machine is given",
      "`millwright machine register --help` lists the fields; give --id or --serial at least, and the endpoints of its BMC and SSH",
    );
  const machine =
    options.file === undefined ? create(MachineSchema) : await readDocument(session, options.file, MachineSchema);
  if (options.id !== undefined) machine.machineId = options.id;
  apply(machine, options);
  const client = await session.client(MachineService);
  const registered = await client.registerMachine({ machine: ownersPart(machine) }, { signal: session.signal });
  await printMachine(session, registered, `Machine ${registered.machineId} registered; it is ${phaseOf(registered)}.`);
}

/** Only what is given changes. */
export async function updateMachine(session: Session, machineId: string, options: MachineFields): Promise<undefined> {
  if (Object.values(options).every((given) => given === undefined))
    throw new UsageError("no change is given", "`millwright machine update --help` lists the fields");
  const client = await session.client(MachineService);
  const machine = clone(MachineSchema, await client.getMachine({ machineId }, { signal: session.signal }));
  apply(machine, options);
  const updated = await client.updateMachine({ machine: ownersPart(machine) }, { signal: session.signal });
  await printMachine(session, updated, `Machine ${machineId} updated.`);
}

export async function labelMachine(
  session: Session,
  machineId: string,
  changes: readonly string[],
): Promise<undefined> {
  const client = await session.client(MachineService);
  const machine = clone(MachineSchema, await client.getMachine({ machineId }, { signal: session.signal }));
  for (const change of changes) {
    const [, removed] = /^([^=]+)-$/.exec(change) ?? [];
    if (removed === undefined) Object.assign(machine.labels, Object.fromEntries([parseLabel(change)]));
    else delete machine.labels[removed];
  }
  // Update takes no labels for "as they are"; registering says that there are none.
  const isLast = Object.keys(machine.labels).length === 0;
  const request = { machine: ownersPart(machine) };
  const labelled = isLast
    ? await client.registerMachine(request, { signal: session.signal })
    : await client.updateMachine({ machine: { machineId, labels: machine.labels } }, { signal: session.signal });
  await printMachine(session, labelled, `Machine ${machineId} labelled.`);
}

function parseLabel(text: string): [key: string, value: string] {
  const at = text.indexOf("=");
  if (at < 1) throw new UsageError(`${JSON.stringify(text)} is not key=value, nor key- to remove it`);
  return [text.slice(0, at), text.slice(at + 1)];
}

/** `[user@]host[:port]=<host key or fingerprint>`; the key itself may end with equals signs. */
function parseJumpHost(text: string): { endpoint: string; hostKey: string; username: string } {
  const [, username = "", endpoint = "", hostKey = ""] = /^(?:([^@=]+)@)?([^@=]+)=(.+)$/.exec(text) ?? [];
  if (endpoint !== "") return { endpoint, hostKey, username };
  throw new UsageError(
    `--jump-host: ${JSON.stringify(text)} is not [user@]host[:port]=<host key>`,
    "such as --jump-host ops@jump-1:22=SHA256:…; `ssh-keyscan jump-1 | ssh-keygen -lf -` prints fingerprints",
  );
}

/** Status is the server's; what `show` printed of it is not sent back. */
const ownersPart = ({ machineId, labels, spec }: Machine): MessageInitShape<typeof MachineSchema> => ({
  machineId,
  labels,
  ...(spec && { spec }),
});

const TEXTS = {
  serial: "serial",
  rack: "rack",
  slot: "slot",
  location: "location",
  customer: "customerId",
  cluster: "targetClusterRef",
  provider: "provider",
  bmcEndpoint: "bmcEndpoint",
  bmcProtocol: "bmcProtocol",
  tlsTrust: "bmcTlsTrust",
  sshEndpoint: "sshEndpoint",
  sshHostKey: "sshHostKey",
} as const satisfies Partial<Record<keyof MachineFields, keyof MachineSpec>>;

function apply(machine: Machine, options: MachineFields): void {
  const spec = machine.spec ?? create(MachineSpecSchema);
  for (const [option, field] of Object.entries(TEXTS) as [keyof typeof TEXTS, (typeof TEXTS)[keyof typeof TEXTS]][]) {
    const given = options[option];
    if (given !== undefined) spec[field] = given;
  }
  if (options.mac !== undefined) spec.macAddresses = options.mac.filter((mac) => mac !== "");
  if (options.jumpHost !== undefined)
    spec.jumpHosts = options.jumpHost
      .filter((host) => host !== "")
      .map((host) => create(JumpHostSchema, parseJumpHost(host)));
  if (options.label !== undefined) machine.labels = Object.fromEntries(options.label.map(parseLabel));
  machine.spec = spec;
}

async function printMachine(session: Session, machine: Machine, sentence: string): Promise<void> {
  const style = session.style();
  if (style.format === "table") printLine(session.terminal.stdout, `${sentence}`);
  else await printOne(session, machineThing(machine, [], style));
}
