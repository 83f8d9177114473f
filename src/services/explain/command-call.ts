import type { JsonObject } from "../../kernel/lifecycle.ts";

/** A call of the API that does what a command does. */
export interface ActionCall {
  /** `package.Service/Method`. */
  readonly method: string;
  /** As JSON has it, by the fields of the contract. */
  readonly request: JsonObject;
  /** Fields of the request that the caller has yet to give. */
  readonly missing: readonly string[];
}

/** What is typed: words in their order, and options with their values; a switch has none. */
interface Typed {
  readonly words: readonly string[];
  readonly options: ReadonlyMap<string, readonly string[]>;
}

interface Shape {
  readonly method: string;
  /** From the words behind the command's own. */
  readonly request: (words: readonly string[], options: Typed["options"]) => JsonObject;
  /** Fields that options give as text, and how the options are called. */
  readonly texts?: Readonly<Record<string, string>>;
  /** How many words follow. */
  readonly takes: number;
}

const run = (method: string): Shape => ({
  method: `millwright.v1.RunActionsService/${method}`,
  takes: 1,
  request: ([run_id = ""], options) => ({
    run_id,
    ...(options.has("new-scripts") && { take_new_scripts: true }),
  }),
  texts: { comment: "comment" },
});
const machine = (method: string, texts: Readonly<Record<string, string>> = { comment: "comment" }): Shape => ({
  method: `millwright.v1.MachineLifecycleService/${method}`,
  takes: 1,
  request: ([machine_id = ""], options) => ({
    machine_id,
    ...(options.has("acknowledge") && { acknowledge: true }),
  }),
  texts,
});
const named = (method: string, field: string, texts: Readonly<Record<string, string>> = {}): Shape => ({
  method: `millwright.v1.${method}`,
  takes: 1,
  request: ([id = ""]) => ({ [field]: id }),
  texts,
});
const COMMENT = { comment: "comment" } as const;
const node = (from: string, state: string): Shape => ({
  method: "millwright.v1.NodeService/ChangeNodeState",
  takes: 1,
  request: ([id = ""], options) => ({ id, from, state, ...(options.has("force") && { force: true }) }),
  texts: { ...COMMENT, workflow_id: "workflow" },
});

/** By the words of the command. What only reads has no call: there is a page, or another answer, that shows it. */
const SHAPES: Readonly<Record<string, Shape>> = {
  "run cancel": { ...run("CancelRun"), method: "baremetal.v1.RunService/CancelRun" },
  "run retry": run("RetryRun"),
  "run resume": run("ResumeRun"),
  "run rerun": run("RerunRun"),
  "run restart-clean": run("RestartRunClean"),
  "run adopt": run("AdoptRun"),
  "run mark-manual": run("MarkRunManual"),
  "run start": {
    method: "baremetal.v1.RunService/StartRun",
    takes: 0,
    request: (_, options) => ({ params: paramsOf(options.get("param") ?? []) }),
    texts: { machine_id: "machine", type: "type", plan_id: "plan" },
  },
  "machine enter-maintenance": machine("EnterMaintenance"),
  "machine exit-maintenance": machine("ExitMaintenance"),
  "machine return": machine("ReturnMachine"),
  "machine accept": machine("AcceptMachine"),
  "machine reprovision": machine("ReprovisionMachine", { reference: "reference" }),
  "machine accept-certificate": machine("AcceptMachineCertificate", { fingerprint: "fingerprint" }),
  "machine power on": {
    method: "millwright.v1.MachinePowerService/SetMachinePower",
    takes: 1,
    request: ([id = ""]) => ({ machine_ids: [id], operation: "POWER_OPERATION_ON" }),
  },
  "rack clear-error": named("RackService/ClearRackError", "rack_id"),
  "rack maintenance terminate": named("RackService/TerminateRackMaintenance", "rack_id"),
  "rack maintenance resume": {
    method: "millwright.v1.RackService/ResumeRackMaintenance",
    takes: 0,
    request: () => ({}),
  },
  "rack-firmware download": named("RackFirmwareService/DownloadRackFirmware", "id"),
  "power-shelf refresh": named("PowerShelfService/RefreshPowerShelf", "id"),
  "node approve": node("discovered", "pending"),
  "node requeue": node("reprovision", "pending"),
  "node retry": node("install_failed", "pending"),
  "node activate": { ...node("", "active"), texts: COMMENT },
  "node arm": named("NodeService/ArmNode", "id"),
  "node confirm-erased": named("NodeService/ConfirmNodeErased", "id", COMMENT),
  "fleet recover": named("FleetNodeService/RecoverNode", "node", COMMENT),
  "fleet reactivate": named("FleetNodeService/ReactivateNode", "node", COMMENT),
  "fleet drain abort": named("FleetNodeService/AbortDrain", "node", COMMENT),
  "fleet remove rollback": named("FleetNodeService/RollbackRemoval", "node", COMMENT),
  "fleet bootstrap reissue": named("FleetNodeService/ReissueBootstrap", "node"),
  "fleet action": {
    method: "millwright.v1.FleetNodeService/ActOnNode",
    takes: 2,
    request: ([node = "", action = ""]) => ({ node, action }),
    texts: COMMENT,
  },
};

const SWITCHES: ReadonlySet<string> = new Set(["acknowledge", "force", "new-scripts", "wait"]);
/** What stands for something that nobody knows yet. */
const isOpen = (text: string): boolean => /^<.*>$/.test(text);

/**
 * The call behind a command of `Explanation`, which is typed as `millwright …`. Undefined: it only reads, or does what no single call does.
 */
export function callOf(command: string): ActionCall | undefined {
  const { words, options } = readTyped(command);
  const name = Object.keys(SHAPES)
    .filter((each) => `${words.join(" ")} `.startsWith(`${each} `))
    .toSorted((a, b) => b.length - a.length)[0];
  const shape = name === undefined ? undefined : SHAPES[name];
  if (name === undefined || shape === undefined) return undefined;
  const rest = words.slice(name.split(" ").length);
  const { method, takes, texts = {}, request } = shape;
  const isWhole = rest.length === takes && !rest.some(isOpen);
  const known = new Set([...Object.values(texts), ...SWITCHES, ...(name === "run start" ? ["param"] : [])]);
  if (!isWhole || [...options.keys()].some((option) => !known.has(option))) return undefined;
  const given = Object.entries(texts).flatMap(([field, option]) => {
    const value = options.get(option)?.[0];
    return value === undefined ? [] : [[field, value] as const];
  });
  const open = options.get("param")?.some((param) => isOpen(param.slice(param.indexOf("=") + 1))) ?? false;
  return {
    method,
    request: { ...request(rest, options), ...Object.fromEntries(given.filter(([, value]) => !isOpen(value))) },
    missing: [...given.flatMap(([field, value]) => (isOpen(value) ? [field] : [])), ...(open ? ["params"] : [])],
  };
}

function paramsOf(params: readonly string[]): JsonObject {
  const pairs = params.map(
    (param) => [param.slice(0, param.indexOf("=")), param.slice(param.indexOf("=") + 1)] as const,
  );
  return Object.fromEntries(pairs.filter(([, value]) => !isOpen(value)));
}

function readTyped(command: string): Typed {
  const words: string[] = [];
  const options = new Map<string, string[]>();
  const typed = command.split(" ").slice(1);
  for (let at = 0; at < typed.length; at += 1) {
    const word = typed[at] ?? "";
    if (!word.startsWith("--")) words.push(word);
    else if (SWITCHES.has(word.slice(2))) options.set(word.slice(2), []);
    else {
      options.set(word.slice(2), [...(options.get(word.slice(2)) ?? []), typed[at + 1] ?? ""]);
      at += 1;
    }
  }
  return { words, options };
}
