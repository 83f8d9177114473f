import { mismatch } from "../../lifecycles/install/workflow.ts";
import { type InstallRecord, listReplaced, loadInstalls } from "../../store/install/installs.ts";
import { listWorkflows } from "../../store/install/workflows.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { ARMED_FOR, isArmed, isWithin } from "../install/boot/armed-boot.ts";
import { explainAnyThing } from "./any-thing.ts";
import { type Explanation, inOrder, type NextCommand, say } from "./explanation.ts";

/** What can be said of any thing, and who else has to do with this one: the run that installs it, who replaces whom. */
export async function explainInstall(deps: ServiceDeps, id: string): Promise<Explanation> {
  const plain = await explainAnyThing(deps, "install", id, "millwright node list");
  const [install] = (await loadInstalls(deps.db, [id])).things;
  if (!install) return plain;
  const [leaving] = await listReplaced(deps.db, [id]);
  const missing = (await missingWorkflow(deps, install)) ?? unexpected(deps, install);
  const contest = contestOf(install);
  const story = [
    ...storyOf(install),
    ...(contest === undefined ? [] : [contest]),
    ...(leaving ? [`it takes the place of node ${leaving.id}`] : []),
  ];
  return {
    ...plain,
    headline: story.length === 0 ? plain.headline : `${plain.headline}; ${story.join("; ")}`,
    waitingFor: [...plain.waitingFor, ...awaitedBy(install, missing)],
    nextCommands: inOrder([
      ...relatedOf(install, leaving?.id),
      ...commandsFor(install, missing),
      ...plain.nextCommands,
    ]),
  };
}

/** Why its next boot would not install it, as that boot would say on the screen. Undefined: it would, or need not. */
async function missingWorkflow({ db }: ServiceDeps, install: InstallRecord): Promise<string | undefined> {
  const { effectiveWorkflowId: id, state, facts } = install;
  if (state.name !== "pending" || facts.orderedBy !== null) return undefined;
  if (id === null) return "a workflow: none is assigned";
  const [workflow] = await listWorkflows(db, { ids: [id], activeOnly: true });
  if (!workflow) return `another workflow: ${id} is not offered any more`;
  const problem = mismatch(workflow, install);
  return problem === undefined ? undefined : `another workflow: ${problem}`;
}

const NOT_EXPECTED = "somebody who expects its boot: it was armed too long ago";

/** A boot that nothing has armed is given no script. */
function unexpected({ armedFor = ARMED_FOR, ...deps }: ServiceDeps, install: InstallRecord): string | undefined {
  if (install.state.name !== "pending" || isArmed(install, nowOf(deps), armedFor)) return undefined;
  const { boot } = install;
  const isUnderWay = boot !== null && boot.armedBy !== null && isWithin(armedFor, boot.at, nowOf(deps));
  return isUnderWay ? undefined : NOT_EXPECTED;
}

/** Two addresses, and nobody but a person can tell which of them is the machine. */
function contestOf({ boot, state }: InstallRecord): string | undefined {
  if (boot?.contestedAt == null || !["pending", "installing", "deprovisioning"].includes(state.name)) return undefined;
  const addresses = [boot.address ?? "", ...boot.others].join(" and ");
  return `its boot is contested: ${addresses} asked for its script, and nothing that either reports decides anything`;
}

const storyOf = ({ facts, state }: InstallRecord): string[] => [
  ...(facts.orderedBy === null ? [] : [`run ${facts.orderedBy} installs it`]),
  ...(state.replacement === undefined ? [] : [`machine ${state.replacement} takes its place`]),
];

/** What nobody but the node itself, or a person, can bring about. */
function awaitedBy({ state, facts }: InstallRecord, missing: string | undefined): string[] {
  switch (state.name) {
    case "discovered":
      return ["a person who approves it"];
    case "pending":
      return [missing ?? "the machine to boot from the network"];
    case "install_failed":
      return [`a person who retries it; the last error was: ${facts.lastInstallError ?? "no reason was given"}`];
    case "installed":
      return facts.orderedBy === null
        ? ["a person who verifies it"]
        : [`the proof that run ${facts.orderedBy} waits for`];
    case "reprovision":
      return ["a person who lets it install"];
    case "deprovisioning":
      return facts.lastInstallError === null ? [] : [`another boot: ${facts.lastInstallError}`];
    default:
      return [];
  }
}

const relatedOf = ({ facts, state }: InstallRecord, leaving: string | undefined): NextCommand[] => [
  ...(facts.orderedBy === null ? [] : [say(`explain run ${facts.orderedBy}`, "explains the run that installs it")]),
  ...(state.replacement === undefined
    ? []
    : [say(`explain install ${state.replacement}`, "explains the install of the replacement")]),
  ...(leaving === undefined ? [] : [say(`node show ${leaving}`, "shows the node that it replaces")]),
];

function commandsFor({ id, state, facts }: InstallRecord, missing: string | undefined): NextCommand[] {
  if (facts.orderedBy !== null) return [];
  const show = say(`node show ${id}`, "shows all that is known of it");
  switch (state.name) {
    case "discovered":
      return [say(`node approve ${id} --workflow <id>`, "installs it at its next boot from the network")];
    case "install_failed":
      return [
        say(`node retry ${id} --workflow <id> --force`, "retries it, with another workflow if the old one cannot work"),
      ];
    case "pending":
      if (missing === undefined) return [show];
      if (missing === NOT_EXPECTED)
        return [say(`node arm ${id}`, "lets its next boot from the network install it"), show];
      return [
        say(`node set ${id} --workflow <id>`, "assigns what its next boot from the network installs"),
        say("workflow list", "lists what can be installed"),
        show,
      ];
    case "installed":
      return [say(`node activate ${id}`, "records that it is verified and in production"), show];
    case "reprovision":
      return [say(`node requeue ${id}`, "installs it at its next boot from the network"), show];
    case "migrating":
      return [show, say(`node activate ${id}`, "cancels the migration, and returns what was moved")];
    case "deprovisioning":
      return [show, say(`node confirm-erased ${id}`, "retires it, if you know otherwise that its disks are erased")];
    default:
      return [show];
  }
}
