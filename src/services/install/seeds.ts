import { createHash } from "node:crypto";
import {
  SEED_FORMATS,
  SEED_SPECS,
  type SeedFormat,
  type SeedInput,
  type SignIn,
} from "../../capabilities/seeds/seed.ts";
import { AppError } from "../../kernel/errors.ts";
import { isActive, type Run, type StepStatus } from "../../runs/model/run.ts";
import type { SeedEvidence } from "../../runs/seeds/seed-choice.ts";
import {
  BOOT_SOURCE_FREE,
  installerMark,
  isSeedKey,
  nodeOfPlace,
  PHONE_HOME,
  SEED_MEDIUM,
  seedDirectory,
} from "../../runs/seeds/seed-place.ts";
import { printStamp, STAMP_FILE } from "../../runs/steps/facts/install-stamp.ts";
import { cloudInitTable } from "../../store/catalog/cloud-init.ts";
import { loadInstalls } from "../../store/install/installs.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { announce } from "../../store/lifecycle/journal.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import { getSshKeyElsewhere } from "../../store/machine/credentials.ts";
import { machineStore } from "../../store/machine/machines.ts";
import { findDocument } from "../../store/run/run-documents.ts";
import { findInstallerRecord, listRuns } from "../../store/run/runs.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import type { BootHolds } from "./boot-holds.ts";
import { hashToken, trustIn } from "./report-token.ts";
import type { ReportDesk } from "./reports.ts";

/** The way to a seed, as it is asked for. */
export interface SeedRequest {
  /** A run, or a node that boots from the network. */
  readonly place: string;
  readonly key: string;
  readonly address: string | null;
  /** As the caller reaches us. */
  readonly server: string;
  /** Whose seeds are served where it is asked for. Absent: everybody's. */
  readonly scope?: SeedScope;
}

export interface SeedScope {
  /** Of nodes that boot from the network. */
  readonly nodes: boolean;
  /** Of runs, which BMCs read; `besides`: those alone that BMCs were sent to by another address than this. */
  readonly runs: boolean | { readonly besides: string | null };
}

export interface Installation {
  readonly run: Run;
  readonly step: StepStatus;
  readonly token: string;
  readonly format: SeedFormat;
  /** As it was noted before anything was done. */
  readonly seed: SeedEvidence;
  /** Set for a node that boots from the network: what it showed. */
  readonly boot: { readonly nodeId: string; readonly mac: string; readonly token: string } | null;
}

const KIND = "run";
export const notFound = (): AppError => new AppError("not_found", "There is no such seed");

/**
 * One file of a seed, or the medium with all of them. It is there for as long as its installation is under way: before, afterwards, and
 * for everybody who does not know the way, there is none.
 */
export async function readSeed(
  deps: ServiceDeps,
  reports: ReportDesk,
  /** `onlyLooks`: who asks for its size has not read it. */
  request: SeedRequest & { readonly file: string; readonly onlyLooks: boolean },
): Promise<{ readonly content: Buffer; readonly at: Date }> {
  const found = await findInstallation(deps, request);
  if (found === undefined) throw notFound();
  const { seedWriter } = deps;
  if (seedWriter === undefined) throw notFound();
  const input = await inputOf(deps, found, request);
  const at = found.run.createdAt;
  if (request.file === SEED_MEDIUM) {
    const medium = seedWriter.mediumOf(input, at);
    if (medium === undefined) throw notFound();
    return { content: medium, at };
  }
  const file = seedWriter.filesOf(input).find(({ name }) => name === request.file);
  if (file === undefined) throw notFound();
  if (found.boot !== null && !request.onlyLooks && file.name === SEED_SPECS[found.format].main)
    await noteStarted(reports, found.boot, request);
  return { content: file.content, at };
}

/** An installer that reads its seed has begun, whether or not it ever reports: from here on its boots go to the disk. */
async function noteStarted(
  reports: ReportDesk,
  { nodeId, mac, token }: NonNullable<Installation["boot"]>,
  { address }: SeedRequest,
): Promise<void> {
  const reportId = `seed-${hashToken(token).slice(0, 32)}`;
  const answer = await reports.submit({ report: { mac, status: "started" }, nodeId, address, reportId, token });
  if (answer instanceof AppError) throw answer;
}

/**
 * An installer that was told what to install says that it has begun. Saying it again is harmless. It is answered once no further boot of the
 * machine goes to the medium, or that takes too long: until then it does not end, and does not restart the machine.
 */
export async function noteInstallerSeen(
  deps: ServiceDeps,
  holds: BootHolds,
  request: SeedRequest,
  signal: AbortSignal,
): Promise<void> {
  const found = await findInstallation(deps, request);
  if (found === undefined) throw notFound();
  const { id } = found.run;
  const order = installerMark(found.token);
  await holds.wait({
    key: `${id} ${order}`,
    note: () => noteBegan(deps, found, request.address),
    isFree: () => isBootSourceFree(deps, id, order),
    signal,
  });
}

async function noteBegan(
  deps: ServiceDeps,
  { run: { id }, step, token }: Installation,
  address: string | null,
): Promise<void> {
  const order = installerMark(token);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: KIND, id }]);
    const [run] = await listRuns(tx, { ids: [id] });
    if (!run || !isActive(run.phase)) return;
    const known = await findInstallerRecord(tx, id);
    if (known.order === order) return;
    await recordChange(tx, storeOf(deps.stores, KIND), {
      id,
      type: "installer_began",
      actor: "installer",
      address,
      data: { step: step.name },
      set: { installer_seen: { ...known, order, at: nowOf(deps).toISOString() } },
    });
    await work.wake(tx, [{ kind: KIND, id }]);
    announce(tx);
  });
}

/** Or the run goes on without it. */
async function isBootSourceFree({ db }: ServiceDeps, id: string, order: string): Promise<boolean> {
  const [run] = await listRuns(db, { ids: [id] });
  const step = run?.steps.find(({ evidence }) => installerMark(String(evidence?.token ?? "")) === order);
  return run?.phase !== "RUNNING" || step?.state !== "RUNNING" || step.receipt?.[BOOT_SOURCE_FREE] === order;
}

export async function findInstallation(deps: ServiceDeps, request: SeedRequest): Promise<Installation | undefined> {
  const nodeId = nodeOfPlace(request.place);
  const found = nodeId === undefined ? await ofRun(deps, request) : await ofBoot(deps, nodeId, request);
  return found && isInScope(found, request.scope) ? found : undefined;
}

function isInScope({ boot, seed }: Installation, scope: SeedScope = { nodes: true, runs: true }): boolean {
  if (boot !== null) return scope.nodes;
  if (typeof scope.runs === "boolean") return scope.runs;
  return scope.runs.besides === null || !seed.url.startsWith(`${scope.runs.besides}/`);
}

async function ofRun({ db }: ServiceDeps, { place, key }: SeedRequest): Promise<Installation | undefined> {
  const [run] = await listRuns(db, { ids: [place] });
  return run && underWay(run, (token) => isSeedKey(key, token), null);
}

/** The token of the boot is worth something until another boot was given one. */
async function ofBoot(
  deps: ServiceDeps,
  nodeId: string,
  { key: token, address }: SeedRequest,
): Promise<Installation | undefined> {
  const { db } = deps;
  const [install] = (await loadInstalls(db, [nodeId])).things;
  if (!install || trustIn(deps, { token, address }, install).is === "none" || install.facts.orderedBy === null)
    return undefined;
  if (install.state.name !== "pending" && install.state.name !== "installing") return undefined;
  const [run] = await listRuns(db, { ids: [install.facts.orderedBy] });
  const isOrder = (ordered: string) => createHash("sha256").update(ordered).digest("hex") === install.facts.orderId;
  return run && underWay(run, isOrder, { nodeId, mac: install.mac, token });
}

/** The installation that the run is at. */
function underWay(run: Run, isMeant: (token: string) => boolean, boot: Installation["boot"]): Installation | undefined {
  if (run.phase !== "RUNNING") return undefined;
  for (const step of run.steps) {
    const { token, seed } = step.evidence ?? {};
    if (step.state !== "RUNNING" || typeof token !== "string" || !isMeant(token)) continue;
    const noted = seed as SeedEvidence | undefined;
    const format = SEED_FORMATS.find((each) => each === noted?.format);
    if (noted !== undefined && format !== undefined) return { run, step, token, format, seed: noted, boot };
  }
  return undefined;
}

export async function inputOf(deps: ServiceDeps, found: Installation, request: SeedRequest): Promise<SeedInput> {
  const { run, step, token, format, seed, boot } = found;
  const { inImage } = seed;
  const [machine] = (await machineStore.load(deps.db, [run.machineId ?? ""])).things;
  const payload = run.plan.steps.find(({ name }) => name === step.name)?.payload;
  if (!machine || !payload) throw notFound();
  const text = printStamp({
    image: String(payload.image_ref ?? ""),
    digest: String(step.evidence?.digest ?? ""),
    machine: machine.id,
    serial: inImage?.serial ?? machine.spec.serial ?? machine.facts.serial ?? "",
    token,
  });
  // An image is read in pieces, over minutes: what it is made of stays as it was when the installation began.
  const signIn = inImage ? inImage.signIn : machine.spec.ssh === null ? null : await signInOf(deps, machine.id);
  const { reportsTo = request.server } = inImage ?? {};
  const directory =
    inImage && inImage.reportsTo === undefined
      ? new URL(".", seed.url).href
      : seedDirectory(reportsTo, request.place, request.key);
  return {
    format,
    machineId: machine.id,
    instanceId: `${run.id}-${installerMark(token).slice(0, 12)}`,
    stamp: { path: STAMP_FILE, text },
    signIn,
    document: await documentOf(deps, run, String(payload.cloud_init_ref ?? "")),
    // Who boots from the network has begun when it reads its seed.
    phoneHome: boot === null ? `${directory}${PHONE_HOME}` : null,
    ...(inImage && { isInImage: true }),
  };
}

async function documentOf({ db, secrets }: ServiceDeps, { jobId }: Run, ref: string): Promise<string | null> {
  if (ref === "") return null;
  const kept = await findDocument(db, secrets, jobId, ref);
  if (kept !== undefined) return kept;
  // A run that another run has started, or one of an earlier version, has no copy.
  const [document] = await cloudInitTable.list(db, { names: [ref] });
  return document?.content ?? null;
}

/** Who signs in where nothing is on record is nobody: the run says so when it looks for the system. */
async function signInOf({ db, secrets, seedWriter }: ServiceDeps, machineId: string): Promise<SignIn | null> {
  const found = await getSshKeyElsewhere(db, secrets, machineId);
  return found instanceof AppError ? null : (seedWriter?.signInOf(found) ?? null);
}
