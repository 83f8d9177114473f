import { LRUCache } from "lru-cache";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import { allowedAddress, type MayReach } from "../transport/allowed-networks.ts";
import { bmcFailure } from "../transport/bmc-failure.ts";
import { type BmcGateway, keyOf, nameOf } from "../transport/bmc-gateway.ts";
import { bytesOf, failureOf, isCipherTrouble } from "./answers.ts";
import { type RunTool, runIpmitool, type ToolResult } from "./ipmitool.ts";

const IPMI_CIPHERS = ["auto", "3", "17"] as const;
export type IpmiCipher = (typeof IPMI_CIPHERS)[number];

export interface IpmiClientOptions {
  readonly gateway: BmcGateway;
  readonly mayReach?: MayReach;
  /** Absent: `ipmitool`, wherever the system has it. */
  readonly command?: string;
  /** Absent: `auto`. */
  readonly cipher?: IpmiCipher;
  readonly requestTimeout?: Duration;
  readonly run?: RunTool;
}

/** One request of the IPMI specification: network function, command and data. */
export interface IpmiRequest {
  readonly netFn: number;
  readonly command: number;
  readonly data?: readonly number[];
  /** In words, for messages. */
  readonly what: string;
  /** Fewer bytes are no answer. */
  readonly answers?: number;
  readonly isCommand?: true;
}

/** Every failure is a `DeviceFailure`, or a `StepFailure` when stopped or without the program. */
export interface IpmiClient {
  /** The bytes of the answer after the completion code. */
  raw(target: BmcTarget, request: IpmiRequest, call: CallContext): Promise<readonly number[]>;
  /**
   * One of the program's own reading commands, in its own words. A refused sign-in looks like no answer here, since what would
   * tell them apart also changes the words: so something raw is asked first.
   */
  read(target: BmcTarget, args: readonly string[], call: CallContext): Promise<ToolResult>;
}

/** The strongest first. Suite 17 signs with SHA-256; 3 is what every BMC with IPMI 2.0 must have. */
const SUITES = ["17", "3"] as const;
const REMEMBERED = 20_000;
/** The specification's limits; the program refuses more in words that help nobody. */
const LONGEST_USERNAME = 16;
const LONGEST_PASSWORD = 20;

/**
 * What is only read may be sent again when no answer comes. A command is sent once: a BMC that is slow to answer carries out each
 * copy of it, and two restarts are not one. Both give up before the longest that a request may take.
 */
const PATIENCE = { "ipmi.read": ["-N", "1", "-R", "2"], "ipmi.command": ["-N", "4", "-R", "1"] } as const;

interface Attempt {
  readonly signal: AbortSignal;
  /** The BMC's, as it was judged. */
  readonly address: string;
  readonly patience: readonly string[];
}

export function createIpmiClient(options: IpmiClientOptions): IpmiClient {
  const { gateway, mayReach, command = "ipmitool", cipher = "auto", run = runIpmitool } = options;
  const { requestTimeout = seconds(10) } = options;
  /** Which suite a BMC takes, so that it is not asked in vain before each request. */
  const suites = new LRUCache<string, (typeof SUITES)[number]>({ max: REMEMBERED });

  async function converse(
    target: BmcTarget,
    args: readonly string[],
    { signal, address, patience }: Attempt,
  ): Promise<ToolResult> {
    const key = keyOf(target);
    const known = suites.get(key);
    const order = cipher === "auto" ? (known === undefined ? SUITES : [known]) : [cipher];
    let result: ToolResult | undefined;
    for (const suite of order) {
      const session = ["-I", "lanplus", "-C", suite, "-H", address, "-p", String(target.port), "-U", target.username];
      // -E: the password is in the environment. -L: as little as suffices, and what accounts for such work are given.
      const how = ["-E", "-L", "OPERATOR", ...patience];
      result = await run({ command, args: [...session, ...how, ...args], password: target.password, signal });
      if (!isCipherTrouble(result)) {
        if (cipher === "auto" && result.code === 0) suites.set(key, suite);
        return result;
      }
      // It may have been replaced, or have had its firmware changed: the next request tries all again.
      suites.delete(key);
    }
    if (result === undefined) throw new Error("no cipher suite to try");
    return result;
  }

  async function ask(
    target: BmcTarget,
    args: readonly string[],
    call: CallContext,
    { what, operation }: { readonly what: string; readonly operation: keyof typeof PATIENCE },
  ): Promise<ToolResult> {
    checkCredentials(target);
    const request = { target, call, operation, what, wanted: requestTimeout, signsIn: true };
    return gateway.run(request, async ({ signal }) => {
      const address = await allowedAddress(target.address, mayReach);
      const result = await converse(target, args, { signal, address, patience: PATIENCE[operation] });
      if (result.code === 0) return result;
      throw failureOf({ target, what }, result);
    });
  }

  return {
    async raw(target, { netFn, command: code, data = [], what, answers = 0, isCommand }, call) {
      const bytes = [netFn, code, ...data].map((byte) => `0x${byte.toString(16).padStart(2, "0")}`);
      const operation = isCommand ? "ipmi.command" : "ipmi.read";
      // -v: only then does the program say why it was not let in.
      const result = await ask(target, ["-v", "raw", ...bytes], call, { what, operation });
      return bytesOf({ target, what }, result, answers);
    },
    read: (target, args, call) => ask(target, args, call, { what: args.join(" "), operation: "ipmi.read" }),
  };
}

function checkCredentials(target: BmcTarget): void {
  const refuse = (why: string) => bmcFailure("credentials_rejected", target, `${nameOf(target)}: ${why}`);
  if (Buffer.byteLength(target.username) > LONGEST_USERNAME)
    throw refuse(`IPMI takes user names of at most ${LONGEST_USERNAME} bytes`);
  if (Buffer.byteLength(target.password) > LONGEST_PASSWORD)
    throw refuse(`IPMI takes passwords of at most ${LONGEST_PASSWORD} bytes`);
  if (/\0/.test(target.username + target.password))
    throw refuse("neither user name nor password can hold a zero character");
}
