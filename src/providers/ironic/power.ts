import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { PowerControl, PowerState, Told } from "../../capabilities/power-control.ts";
import type { Reset, ResetMode } from "../../capabilities/reset.ts";
import type { Clock } from "../../kernel/clock.ts";
import { type Duration, seconds } from "../../kernel/duration.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { keyOf } from "../bmc-gateway.ts";
import { BoundedMemory } from "../bounded-memory.ts";
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

interface Commanded {
  readonly desired: "on" | "off" | undefined;
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
  const commanded = new BoundedMemory<Commanded>(REMEMBERED);

  function check(target: BmcTarget, node: IronicNode): IronicNode {
    const last = commanded.get(keyOfNode(target));
    if (last === undefined || node.lastError === undefined || node.targetPower !== undefined) return node;
    if (node.lastError === last.errorBefore && clock.monotonic() - last.at < OLD_ERROR_LASTS) return node;
    commanded.forget(keyOfNode(target));
    throw new DeviceFailure("retry", "refused", `${node.label} could not change its power: ${node.lastError}`);
  }

  function isAwaited(key: string, desired: "on" | "off", told: Told | undefined): boolean {
    const last = commanded.get(key);
    if (last?.desired === desired && clock.monotonic() - last.at < commandSettles) return true;
    return told !== undefined && Math.abs(clock.now().getTime() - told.at.getTime()) < commandSettles;
  }

  async function command(target: BmcTarget, node: IronicNode, wish: keyof typeof WISHES, call: CallContext) {
    const desired = wish === "on" || wish === "off" ? wish : undefined;
    const note = { desired, at: clock.monotonic(), errorBefore: node.lastError };
    try {
      await sendFirstAccepted(nodes, target, WISHES[wish], call);
      commanded.set(keyOfNode(target), note);
    } catch (error) {
      if (mayHaveArrived(error)) commanded.set(keyOfNode(target), note);
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
      if (power === desired || power === `powering_${desired}`) {
        // Reached: should somebody undo it, the next wish is a new one.
        if (power === desired) commanded.forget(keyOfNode(target));
        return { commanded: false };
      }
      if (isAwaited(keyOfNode(target), desired, told)) return { commanded: false };
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
      const isRefused = error instanceof DeviceFailure && error.reason === "refused";
      if (!isRefused || index === words.length - 1) throw error;
    }
  }
}

/** No answer, half an answer, or nobody waited for it: the command may be on its way to being carried out. */
function mayHaveArrived(error: unknown): boolean {
  if (!(error instanceof DeviceFailure)) return error instanceof StepFailure;
  return error.disposition === "retry" && error.status !== 409 && error.status !== 429;
}
