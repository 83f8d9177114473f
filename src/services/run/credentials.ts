import { AppError } from "../../kernel/errors.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import type { Step } from "../../runs/model/plan/plan.ts";
import { givesCredentials, hasNoCredentials } from "../../runs/model/sign-ins.ts";
import { ENDPOINTS } from "../../runs/model/targets.ts";
import { findMachineCredentials } from "../../store/machine/credentials.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import type { ServiceDeps } from "../call/deps.ts";
import type { StepNeeds } from "./start-checks.ts";

interface RunWithNeeds {
  readonly machine: Pick<Machine, "id" | "state">;
  readonly needs: ReadonlyMap<Step, StepNeeds>;
}

export type KnownCredentials = Awaited<ReturnType<typeof findMachineCredentials>>;

/**
 * Of all that the runs need to sign in with, what is on record: one query however many runs there are, and none where they need none.
 * Whoever holds the locks of the machines knows that it stays so until they let go: giving and removing them takes the lock as well.
 */
export const findCredentials = (
  db: Queryable,
  { secrets }: Pick<ServiceDeps, "secrets">,
  runs: readonly RunWithNeeds[],
): Promise<KnownCredentials> =>
  findMachineCredentials(
    db,
    secrets,
    runs.flatMap(({ machine, needs }) =>
      [...new Set([...needs.values()].flatMap(({ signIns }) => signIns))].map((endpoint) => ({
        machineId: machine.id,
        endpoint,
      })),
    ),
  );

/** Where a step would have to sign in, and nobody has said as whom: a run would find out only in its middle. */
export function findMissingCredentials(known: KnownCredentials, { machine, needs }: RunWithNeeds): AppError[] {
  const { id, state } = machine;
  if (state.name === "RETIRED") return []; // it has none, and is given none any more
  const missing = ENDPOINTS.flatMap((endpoint) => {
    const step = [...needs].find(([, { signIns }]) => signIns.includes(endpoint))?.[0];
    return step === undefined || known({ machineId: id, endpoint }) ? [] : [{ endpoint, step }];
  });
  // Who gives one of them gives the others along: they would be asked for next.
  const next = givesCredentials(
    id,
    missing.map(({ endpoint }) => endpoint),
  );
  return missing.map(
    ({ endpoint, step }) =>
      new AppError("failed_precondition", `${hasNoCredentials(id, endpoint)}, which step ${step.name} needs`, {
        field: "machine_id",
        next,
      }),
  );
}

export function checkCredentials(known: KnownCredentials, run: RunWithNeeds): void {
  const [conflict] = findMissingCredentials(known, run);
  if (conflict) throw conflict;
}
