import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure, isRefusal } from "../../capabilities/device-failure.ts";
import type { DeviceLogEntry } from "../../capabilities/sensors.ts";
import type { Health } from "../../capabilities/vitals.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { minutes, seconds } from "../../kernel/time/duration.ts";
import { type Payloads, parsePayload } from "../model/plan/payloads.ts";
import { type ActingContext, defineStep, type ProbeAnswer, type StepContext } from "../model/step.ts";
import { whileUp } from "./facts/boot-id.ts";
import { NO_EFFECT, silent } from "./facts/in-the-way.ts";
import { eventLines, evidenceLines } from "./facts/rma-evidence.ts";

type Used = "locator" | "sensors" | "vitals" | "exec";
type Context = StepContext<Payloads["rma"], "power" | "system", Used>;
type Acting = ActingContext<Payloads["rma"], JsonObject, "power" | "system", Used>;

const MOST_EVENTS = 50;
const LAST_LINES = 100;
const LONGEST_LOG = 16_384;
const LAST_LOGS = `journalctl -p warning -n ${LAST_LINES} --no-pager 2>/dev/null || dmesg 2>/dev/null | tail -n ${LAST_LINES}\n`;

/**
 * Takes the machine out for return: collects what whoever repairs it will ask for, turns it off and lights its locator. Done when
 * the BMC reports it off and the light on. What was collected is the step's evidence, and in the run's log.
 */
export const rma = defineStep({
  kind: "rma",
  needs: ["power", "system"],
  mayUse: ["locator", "sensors", "vitals", "exec"],
  goesWithout: ["exec"],
  defaults: { timeout: minutes(2), maxRetries: 1 },
  parse: parsePayload.rma,
  endsIn: "RMA",
  fromOutside: true,

  /** A faulty machine may not tell everything: what is missing is left out, and never a reason not to go on. */
  async before(context: Context): Promise<JsonObject> {
    const { payload, params, can, targets, call } = context;
    const bmc = await targets.bmc();
    const identity = await can.system.identify(bmc, call);
    const firmware = await ifItTells(call, () => can.system.readFirmware(bmc, call));
    const health = await ifItTells(call, async () => can.sensors?.readHealth(bmc, call));
    const vitals = await ifItTells(call, async () => can.vitals?.readVitals(bmc, call));
    const events = await ifItTells(call, async () => can.sensors?.readLog(bmc, call, { limit: MOST_EVENTS }));
    const described = (events ?? []).map(describeEvent);
    const lastLogs = await readLastLogs(context);
    return {
      reason: payload.reason,
      ticket: params.ticket || null,
      serial: identity.serial,
      systemUuid: identity.systemUuid,
      vendor: identity.vendor,
      model: identity.model,
      firmware: (firmware ?? []).map(({ name, version }) => ({ name, version })),
      health: worseOf(health?.status, vitals?.health),
      ailments: (vitals?.ailments ?? []).map(({ name, health: how }) => ({ name, health: how })),
      events: described,
      // Of a system that tells nothing any more, its BMC's log is the last there is.
      lastLogs: lastLogs === "" ? eventLines(described) : lastLogs,
      lastLogsFrom: lastLogs === "" ? "bmc" : "system",
    };
  },

  async act(context: Acting) {
    const { can, targets, call, log, evidence } = context;
    log(evidenceLines(evidence));
    await can.power.setPower(await targets.bmc(), "off", call);
    log("[rma] power off requested\n");
    await lightLocator(context);
  },

  async probe({ payload, evidence, can, targets, call }: Acting): Promise<ProbeAnswer> {
    const bmc = await targets.bmc();
    const seen = await whileUp(async () => ({
      power: await can.power.readPower(bmc, call),
      light: await can.locator?.readLocator(bmc, call),
    }));
    if (seen === undefined) return { state: "unknown", message: "the BMC does not answer", cause: silent("bmc") };
    const { power, light } = seen;
    if (power === "on" || power === "powering_on")
      return { state: "not_done", message: `the machine is ${power}`, cause: NO_EFFECT };
    if (power !== "off") return { state: "in_progress", message: `waiting for the machine to be off (it is ${power})` };
    if (light === "dark")
      return { state: "not_done", message: "the machine is off, but its locator is dark", cause: NO_EFFECT };
    const ticket = typeof evidence.ticket === "string" ? `, ticket ${evidence.ticket}` : "";
    return {
      state: "done",
      message: `off for return: ${payload.reason}${ticket}${light === "lit" ? "; its locator is lit" : ""}`,
      // One that does not tell may be lit as well: whoever brings the machine back into use puts it out.
      facts: { powerState: "off", ...(light !== undefined && { locatorLit: true }) },
    };
  },

  residue: () => "the machine may be off, and its locator lit",
});

/** A machine that has no light goes out without one; which is not what one says that tells of its light. */
async function lightLocator({ can: { locator }, targets, call, log }: Acting): Promise<void> {
  const bmc = await targets.bmc();
  try {
    await locator?.setLocator(bmc, "lit", call);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    if ((await locator?.readLocator(bmc, call)) !== "unknown") throw error;
    log(`[rma] its locator is not lit: ${error.message}\n`);
  }
}

/** A BMC that is broken itself may refuse, or answer nonsense: what it cannot tell is left out. */
async function ifItTells<T>({ signal }: CallContext, ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (signal.aborted || !(error instanceof DeviceFailure)) throw error;
    return undefined;
  }
}

/** One sums up what the other has not heard of. */
const worseOf = (...told: readonly (Health | undefined)[]): Health | null =>
  (["critical", "warning", "ok", "unknown"] as const).find((each) => told.includes(each)) ?? null;

const describeEvent = ({ id, at, severity, message }: DeviceLogEntry): JsonObject => ({
  id,
  at: at === null ? null : at.toISOString(),
  severity,
  message,
});

async function readLastLogs({ machine, can, targets, call }: Context): Promise<string> {
  const { exec } = can;
  if (exec === undefined || machine.spec.ssh === null) return "";
  try {
    const asked = { script: LAST_LOGS, env: {}, timeout: seconds(10), asRoot: true } as const;
    const { output } = await exec.run(await targets.ssh(), asked, call);
    return output.slice(-LONGEST_LOG).replaceAll("\0", "");
  } catch (error) {
    if (call.signal.aborted) throw error;
    return "";
  }
}
