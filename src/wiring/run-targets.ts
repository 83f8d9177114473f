import type { BmcTarget } from "../capabilities/bmc-target.ts";
import type { Provider } from "../capabilities/provider.ts";
import type { Thing } from "../kernel/lifecycle.ts";
import type { RunContext } from "../runs/executor/executor.ts";
import type { RunThing } from "../runs/model/lifecycle.ts";
import type { Step } from "../runs/model/plan/plan.ts";
import type { RunOn, TargetKind } from "../runs/targets/target-kind.ts";

/** One kind of target with what its steps need of the world around them. */
export interface WiredTarget<T extends Thing = Thing> {
  readonly kind: TargetKind<T>;
  /** As steps see it. Absent: as it is on record. */
  readonly asSeen?: (thing: T) => T;
  readonly providerOf: (thing: T) => Provider;
  /** Its BMC, with the credentials on record. Absent: it has none. */
  readonly bmcOf?: (thing: T) => Promise<BmcTarget>;
  /** What steps on this kind of target are given beside what all steps are. */
  readonly partsOf: (run: RunOn<T>, step: Step) => object;
}

export interface RunTargets {
  asSeen(run: RunThing): RunThing;
  contextOf(run: RunThing): Pick<RunContext, "target" | "provider" | "partsOf">;
}

/** What the executor is given of a run's target, by its kind. */
export function collectRunTargets(targets: readonly WiredTarget[]): RunTargets {
  const byKind = new Map(targets.map((target) => [target.kind.kind, target]));
  const wiredFor = ({ id, target }: RunThing): WiredTarget => {
    const wired = byKind.get(target.kind);
    if (!wired) throw new Error(`run ${id} is on a ${target.kind}, which runs cannot work on in this server`);
    return wired;
  };
  return {
    asSeen(run) {
      const { thing } = run.target;
      const { asSeen } = wiredFor(run);
      return thing === null || !asSeen ? run : { ...run, target: { ...run.target, thing: asSeen(thing) } };
    },
    contextOf(run) {
      const { kind, providerOf, partsOf } = wiredFor(run);
      const { thing, kind: word } = run.target;
      return { target: kind, provider: thing === null ? { name: word, can: {} } : providerOf(thing), partsOf };
    },
  };
}
