import { type Plan, validatePlan } from "../model/plan/plan.ts";
import { join } from "./join.ts";
import { netReconfig } from "./net-reconfig.ts";
import { reboot } from "./reboot.ts";
import { repaveJoin } from "./repave-join.ts";
import { repaveUbuntu2204 } from "./repave-ubuntu-2204.ts";
import { rma } from "./rma.ts";
import { upgrade } from "./upgrade.ts";

/** The plans that every server has, in the order of their ids. They cannot be deleted. */
export const BUILT_IN_PLANS: readonly Plan[] = [join, netReconfig, reboot, repaveJoin, repaveUbuntu2204, rma, upgrade]
  .map((plan) => validatePlan(plan))
  .toSorted((a, b) => (a.planId < b.planId ? -1 : 1));
