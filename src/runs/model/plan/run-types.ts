import { AppError } from "../../../kernel/errors.ts";

/** What a caller can ask for by its purpose, and the plan that serves it unless another is named. */
export const DEFAULT_PLANS = {
  REPAVE: "plan/repave-join",
  RMA: "plan/rma",
  REBOOT: "plan/reboot",
  UPGRADE: "plan/upgrade",
  NET_RECONFIG: "plan/net-reconfig",
  JOIN: "plan/join",
} as const;
export type RunType = keyof typeof DEFAULT_PLANS;
export const RUN_TYPES = Object.keys(DEFAULT_PLANS) as readonly RunType[];

/** Jobs of fleet nodes have commands of their own: a run of a plan would leave their node where it was. */
const FLEET_COMMANDS: { readonly [type: string]: string } = {
  ONBOARD: "millwright fleet onboard",
  DECOMMISSION: "millwright fleet decommission",
};

/** Also in small letters, and with dashes (`net-reconfig`). */
export function findRunType(text: string): RunType | undefined {
  const word = text.toUpperCase().replaceAll("-", "_");
  return RUN_TYPES.find((each) => each === word);
}

export function parseRunType(text: string): RunType {
  const type = findRunType(text);
  if (type !== undefined) return type;
  const command = FLEET_COMMANDS[text.toUpperCase()];
  if (command !== undefined)
    throw new AppError("invalid_argument", `type: ${text} is a job of a fleet node, which \`${command}\` starts`, {
      field: "type",
      next: `${command} --help`,
    });
  throw new AppError(
    "invalid_argument",
    `type: ${JSON.stringify(text.slice(0, 80))} is not a run type; known: ${RUN_TYPES.join(", ")}`,
    { field: "type" },
  );
}

/** The type and the plan of a run: either may be left out, but not both. A plan that is named comes before the default. */
export function chooseRunType(input: { readonly type: string; readonly planId: string }): {
  readonly type: RunType | "";
  readonly planId: string;
} {
  if (input.type !== "") {
    const type = parseRunType(input.type);
    return { type, planId: input.planId || DEFAULT_PLANS[type] };
  }
  if (input.planId !== "") return { type: "", planId: input.planId };
  throw new AppError("invalid_argument", `type: is required unless plan_id is given; known: ${RUN_TYPES.join(", ")}`, {
    field: "type",
  });
}
