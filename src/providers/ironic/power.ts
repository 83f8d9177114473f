import { LRUCache } from "lru-cache";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure, isRefusal } from "../../capabilities/device-failure.ts";
import type { PowerControl, PowerState } from "../../capabilities/power-control.ts";
import type { Reset, ResetMode } from "../../capabilities/reset.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import { keyOf } from "../transport/bmc-gateway.ts";
import { isReachedOrUnderWay, mayHaveArrived, PowerCommands } from "../transport/power-commands.ts";
import type { IronicNode, Nodes } from "./node.ts";

const POWER: Readonly<Record<string, PowerState>> = { "power on": "on", "power off": "off" };

/** While Ironic is at it. A restart ends with the machine on. */
const ON_ITS_WAY: Readonly<Record<string, PowerState>> = {
  "power on": "powering_on",
  rebooting: "powering_on",
  "soft rebooting": "powering_on",
  "power off": "powering_off",
  "soft power off": "powering_off",
};

/** Ironic's words for each wish, the best first; drivers that cannot ask the system to go down are told to restart at once. */
const WISHES = {
  on: ["power on"],
  off: ["power off"],
  graceful: ["soft rebooting", "rebooting"],
  forced: ["rebooting"],
} as const satisfies Record<"on" | "off" | ResetMode, readonly string[]>;

export const powerOf = ({ power = "", targetPower }: Pick<IronicNode, "power" | "targetPower">): PowerState =>
  (targetPower === undefined ? POWER[power] : ON_ITS_WAY[targetPower]) ?? "unknown";

export interface IronicPowerOptions {
  readonly clock: Clock;
  /** How long an accepted command is given to show before it is sent again. */
  readonly commandSettles?: Duration;
}

/** What the node said of itself when it was last told something. */
interface Commanded {
  readonly at: number;
  readonly errorBefore: string | undefined;
}

/** An error that was there before the command is Ironic's last one for a moment longer. */
const OLD_ERROR_LASTS = seconds(3);
const REMEMBERED = 20_000;

export const keyOfNode = (target: BmcTarget): string => `${keyOf(target)}${target.path ?? ""}`;

export interface IronicPower extends PowerControl, Reset {
  /** A command is accepted long before Ironic knows whether it can be carried out: its failure is found here. */
  check(target: BmcTarget, node: IronicNode): IronicNode;
}

export function createIronicPower(nodes: Nodes, options: IronicPowerOptions): IronicPower {
  const { clock, commandSettles = seconds(20) } = options;
  const commands = new PowerCommands(clock, commandSettles);
  const commanded = new LRUCache<string, Commanded>({ max: REMEMBERED });

  const forget = (key: string): void => {
    commands.forget(key);
    commanded.delete(key);
  };

  function check(target: BmcTarget, node: IronicNode): IronicNode {
    const failure = failureOf(node, commanded.get(keyOfNode(target)), clock);
    if (failure === undefined) return node;
    forget(keyOfNode(target));
    throw failure;
  }

  async function command(target: BmcTarget, node: IronicNode, wish: keyof typeof WISHES, call: CallContext) {
    const key = keyOfNode(target);
    const note = { at: clock.monotonic(), errorBefore: node.lastError };
    const remember = () => {
      commanded.set(key, note);
      if (wish === "on" || wish === "off") commands.note(key, wish);
      else commands.forget(key);
    };
    try {
      await sendFirstAccepted(nodes, target, WISHES[wish], call);
      remember();
    } catch (error) {
      if (mayHaveArrived(error)) remember();
      throw error;
    }
  }

  return {
    check,
    async readPower(target, call) {
      return powerOf(check(target, await nodes.read(target, call)));
    },

    async setPower(target, desired, call, told) {
      const node = check(target, await nodes.readForCommand(target, call));
      const power = powerOf(node);
      if (isReachedOrUnderWay(power, desired)) {
        // Under way it may still fail, which the next pass finds by what was noted.
        if (power === desired) forget(keyOfNode(target));
        return { commanded: false };
      }
      if (commands.isAwaited(keyOfNode(target), desired, told)) return { commanded: false };
      await command(target, node, desired, call);
      return { commanded: true };
    },

    async resetPower(target, mode, call) {
      const node = await nodes.readForCommand(target, call);
      const power = powerOf(node);
      await command(target, node, power === "off" || power === "powering_off" ? "on" : mode, call);
    },
  };
}

/** Of the last command, where Ironic has given it up. */
function failureOf(node: IronicNode, last: Commanded | undefined, clock: Clock): DeviceFailure | undefined {
  if (last === undefined || node.lastError === undefined || node.targetPower !== undefined) return undefined;
  if (node.lastError === last.errorBefore && clock.monotonic() - last.at < OLD_ERROR_LASTS) return undefined;
  return new DeviceFailure("refused_by_device", "bmc", `${node.label} could not change its power: ${node.lastError}`, {
    disposition: "retry",
  });
}

async function sendFirstAccepted(
  { client }: Nodes,
  target: BmcTarget,
  words: readonly string[],
  call: CallContext,
): Promise<void> {
  for (const [index, word] of words.entries()) {
    try {
      return await client.put(target, "/states/power", { target: word }, call);
    } catch (error) {
      const isRefused = isRefusal(error);
      if (!isRefused || index === words.length - 1) throw error;
    }
  }
}
