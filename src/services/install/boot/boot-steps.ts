import { AppError } from "../../../kernel/errors.ts";
import type { InstallStep } from "../../../lifecycles/install/install.ts";
import { stepsToRun, type WorkflowStep } from "../../../lifecycles/install/workflow.ts";
import { type InstallRecord, loadInstalls } from "../../../store/install/installs.ts";
import { listWorkflows } from "../../../store/install/workflows.ts";
import { isResumed } from "../../../store/restore/parked.ts";
import { findLiveReview } from "../../../store/restore/reviews.ts";
import type { ServiceDeps } from "../../call/deps.ts";
import { underReview } from "../../restore/gate.ts";
import { INSTALL_KIND } from "../key.ts";
import { findOwners } from "../owners.ts";
import { badToken, trustIn } from "../report-token.ts";
import { writeStepLines } from "../step-lines.ts";
import { absolute, fill } from "./boot-script.ts";

export interface StepsRequest {
  readonly mac: string;
  /** That of the boot. Steps hold what people wrote into them: without it nobody reads them, whatever reports need. */
  readonly token: string;
  readonly address: string | null;
  /** As the node reaches us. */
  readonly server: string;
}

/** What the environment that a node has booted is to do. Changes nothing. */
export async function readBootSteps(deps: ServiceDeps, { mac, token, server, address }: StepsRequest): Promise<string> {
  const { db } = deps;
  const [id] = await findOwners(db, [{ mac, token }]);
  const [install] = id === undefined ? [] : (await loadInstalls(db, [id])).things;
  // An address that nobody has and a token that is wrong look the same.
  const trust = install && trustIn(deps, { token, address }, install);
  if (!install || trust === undefined || trust.is === "none") throw badToken();
  const review = await findLiveReview(db);
  if (review && !(await isResumed(db, review.id, { kind: INSTALL_KIND, id: install.id }))) throw underReview(review);
  const workflowId = install.effectiveWorkflowId;
  const [workflow] = workflowId === null ? [] : await listWorkflows(db, { ids: [workflowId] });
  const steps = paired(install, workflow === undefined ? [] : stepsToRun(workflow));
  const { facts } = install;
  const words = { server, nodeId: install.id, mac, ip: facts.ipAddress ?? undefined, token };
  return writeStepLines({
    // Of two who claim a boot each installs: which of them is the machine people decide.
    state: trust.is === "doubted" && install.state.name === "pending" ? "installing" : install.state.name,
    resumes: install.state.name === "installing" && facts.steps.some(({ state }) => state !== "pending"),
    steps,
    fill: (text) => absolute(fill(text, words), server),
  });
}

/** Each with how far it is. Steps that are not those of the boot would be reported under the wrong names. */
function paired(
  { facts }: InstallRecord,
  steps: readonly WorkflowStep[],
): readonly (readonly [WorkflowStep, InstallStep])[] {
  const isSame = ({ sequence, type }: WorkflowStep, index: number) =>
    facts.steps[index]?.sequence === sequence && facts.steps[index]?.type === type;
  if (steps.length !== facts.steps.length || !steps.every(isSame))
    throw new AppError("conflict", "the steps of the workflow were changed after this boot; boot the machine again");
  return steps.map((step, index) => [step, facts.steps[index] as InstallStep]);
}
