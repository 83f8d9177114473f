import { parseInput } from "../invalid-input.ts";
import type { SeededValues } from "../seeded-values.ts";
import type { StateJournal } from "../state-journal.ts";
import {
  type FaultOf,
  type FaultRule,
  type FaultType,
  faultRuleSchema,
  type Occasion,
  ruleCovers,
} from "./fault-rule.ts";

export interface PresentFault {
  readonly id: string;
  readonly rule: FaultRule;
  /** Real time in milliseconds; the phase of a flap counts from here. */
  readonly since: number;
  /** Occasions that the rule covered, and how many of them it spoiled. */
  readonly seen: number;
  readonly applied: number;
}

type TransportFault = FaultOf<"status" | "drop" | "hang" | "garbage">;

/** What happens to a request on its way, before any question of what the device does with it. */
export interface TransportTrouble {
  readonly latencyMs: number;
  readonly ending: TransportFault | undefined;
}

const KEY_PREFIX = "fault/";
const COUNTER_KEY = "fault-counter";

/**
 * The fault rules in force, in the order in which they were set.
 *
 * Rules set at run time belong to the devices' world and survive a crash like the devices do, with their counts; rules
 * given at the start are given anew at each start.
 */
export class FaultBook {
  readonly #faults = new Map<string, PresentFault>();
  readonly #journal: StateJournal;
  readonly #seeded: SeededValues;
  readonly #realNow: () => number;

  constructor(options: {
    journal: StateJournal;
    seeded: SeededValues;
    realNow: () => number;
    atStart: readonly FaultRule[];
  }) {
    this.#journal = options.journal;
    this.#seeded = options.seeded;
    this.#realNow = options.realNow;
    for (const [index, rule] of options.atStart.entries()) this.#set(`start-${index + 1}`, rule);
    const kept = this.#journal.keys(KEY_PREFIX).map((key) => this.#journal.get(key) as PresentFault);
    for (const fault of kept.toSorted((a, b) => numberOf(a.id) - numberOf(b.id))) {
      this.#faults.set(fault.id, { ...fault, rule: parseInput(faultRuleSchema, fault.rule, fault.id) });
    }
  }

  add(rule: FaultRule): PresentFault {
    const number = ((this.#journal.get(COUNTER_KEY) as number | undefined) ?? 0) + 1;
    this.#journal.put(COUNTER_KEY, number);
    const fault = this.#set(`fault-${number}`, rule);
    this.#journal.put(KEY_PREFIX + fault.id, fault);
    return fault;
  }

  list(): readonly PresentFault[] {
    return [...this.#faults.values()];
  }

  get(id: string): PresentFault | undefined {
    return this.#faults.get(id);
  }

  remove(id: string): boolean {
    this.#journal.delete(KEY_PREFIX + id);
    return this.#faults.delete(id);
  }

  clear(): number {
    const ids = [...this.#faults.keys()];
    for (const id of ids) this.remove(id);
    return ids.length;
  }

  /** Latencies add up; the first rule that ends the request decides how. */
  transport(occasion: Occasion): TransportTrouble {
    let latencyMs = 0;
    for (const { id, rule } of this.#faults.values()) {
      const { fault } = rule;
      switch (fault.type) {
        case "latency":
          if (this.#strikes(id, occasion)) latencyMs += fault.ms;
          break;
        case "flap":
          if (this.#isDown(id, fault) && this.#strikes(id, occasion)) return { latencyMs, ending: { type: "drop" } };
          break;
        case "status":
        case "drop":
        case "hang":
        case "garbage":
          if (this.#strikes(id, occasion)) return { latencyMs, ending: fault };
          break;
        default:
          break; // Faults of the device itself; asked for by `strike` where they matter.
      }
    }
    return { latencyMs, ending: undefined };
  }

  /** Asked at the very moment when a fault of this type would matter, so that `times` and `after` count only those. */
  strike<T extends FaultType>(
    type: T,
    occasion: Occasion,
  ): { readonly id: string; readonly fault: FaultOf<T> } | undefined {
    for (const { id, rule } of this.#faults.values()) {
      if (rule.fault.type === type && this.#strikes(id, occasion)) return { id, fault: rule.fault as FaultOf<T> };
    }
    return undefined;
  }

  #set(id: string, rule: FaultRule): PresentFault {
    const fault: PresentFault = { id, rule, since: this.#realNow(), seen: 0, applied: 0 };
    this.#faults.set(id, fault);
    return fault;
  }

  #strikes(id: string, occasion: Occasion): boolean {
    const fault = this.#faults.get(id);
    if (fault === undefined || !ruleCovers(fault.rule, occasion)) return false;
    const { after = 0, times = Number.POSITIVE_INFINITY, probability = 1 } = fault.rule;
    if (fault.applied >= times) return false;
    const drawn = probability >= 1 || this.#seeded.fraction(`${id}/${fault.seen}`) < probability;
    const applied = fault.seen >= after && drawn;
    this.#count({ ...fault, seen: fault.seen + 1, applied: fault.applied + (applied ? 1 : 0) });
    return applied;
  }

  #count(fault: PresentFault): void {
    this.#faults.set(fault.id, fault);
    const { times, after, probability } = fault.rule;
    const countsMatter = times !== undefined || after !== undefined || probability !== undefined;
    if (countsMatter && this.#journal.get(KEY_PREFIX + fault.id) !== undefined)
      this.#journal.put(KEY_PREFIX + fault.id, fault);
  }

  #isDown(id: string, flap: FaultOf<"flap">): boolean {
    const since = this.#faults.get(id)?.since ?? 0;
    return (this.#realNow() - since) % (flap.up_ms + flap.down_ms) >= flap.up_ms;
  }
}

const numberOf = (id: string): number => Number(id.slice(id.indexOf("-") + 1));
