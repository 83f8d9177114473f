import type { Json, Owner } from "../../kernel/lifecycle.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import { INSTALL_STATES } from "../../lifecycles/install/install.ts";
import { TRIGGERED_BY } from "../../lifecycles/install/lifecycle.ts";
import { countInstalls, listStalled, pageEntries } from "../../store/install/history.ts";
import { type InstallRecord, loadInstalls } from "../../store/install/installs.ts";
import type { JournalRow } from "../../store/lifecycle/journal.ts";
import { findRemoval, type Removal } from "../../store/lifecycle/journal-retention.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { getInstall } from "./installs.ts";

/** A transition of a node, in the words of the history. */
export interface InstallTransition {
  readonly id: string;
  readonly fromState: string;
  readonly toState: string;
  readonly triggeredBy: (typeof TRIGGERED_BY)[Owner];
  readonly userId: string | null;
  readonly comment: string | null;
  readonly metadata: Readonly<Record<string, Json>> | null;
  readonly createdAt: Date;
}

export interface PageWish {
  readonly limit: number;
  readonly offset: number;
}

/** How many entries there are, and what retention has removed; undefined while the history is whole. */
interface Extent {
  readonly total: number;
  readonly removal: Removal | undefined;
}

/** Newest first. */
export async function historyOf(
  deps: ServiceDeps,
  id: string,
  page: PageWish,
): Promise<Extent & { readonly transitions: readonly InstallTransition[] }> {
  await getInstall(deps, id);
  const { rows, total } = await pageEntries(deps.db, { id, ...page, transitionsOnly: true });
  return { transitions: rows.map(transitionOf), total, removal: await removalOf(deps, id) };
}

function transitionOf(row: JournalRow): InstallTransition {
  const triggeredBy = TRIGGERED_BY[(row.owner ?? "other") as Owner];
  const { trigger, commented } = row.data;
  return {
    id: row.cursor,
    fromState: row.from ?? "",
    toState: row.to ?? "",
    triggeredBy,
    userId: triggeredBy === "admin" ? row.actor : null,
    // What nobody said is the table's own word for what happened, and no comment.
    comment: triggeredBy === "admin" && (row.reason !== trigger || commented === true) ? row.reason : null,
    metadata: metadataOf(row),
    createdAt: row.at,
  };
}

/** Why it failed and for the how-many-th time; who replaces it; which run it was. */
function metadataOf({ to, data, actor, owner }: JournalRow): Readonly<Record<string, Json>> | null {
  const facts = (data.facts ?? {}) as Readonly<Record<string, Json>>;
  const state = (data.state ?? {}) as Readonly<Record<string, Json>>;
  const metadata = {
    ...(to === "install_failed" && { error: facts.lastInstallError ?? null, attempt: facts.installAttempts ?? null }),
    ...(typeof state.replacement === "string" && { replacement_id: state.replacement }),
    ...(owner === "other" && { caused_by: actor }),
  };
  return Object.keys(metadata).length === 0 ? null : metadata;
}

export interface InstallEvent {
  readonly id: string;
  readonly type: string;
  readonly message: string | null;
  readonly actor: string;
  readonly data: Readonly<Record<string, Json>>;
  readonly createdAt: Date;
}

/** Everything that happened to a node: also reports that did not fit, progress and changes by people. Newest first. */
export async function eventsOf(
  deps: ServiceDeps,
  id: string,
  page: PageWish & { readonly type?: string | undefined },
): Promise<Extent & { readonly events: readonly InstallEvent[] }> {
  await getInstall(deps, id);
  const { rows, total } = await pageEntries(deps.db, { id, ...page, transitionsOnly: false });
  const events = rows.map(({ cursor, type, reason, actor, data, at }) => ({
    id: cursor,
    type,
    message: reason,
    actor,
    data,
    createdAt: at,
  }));
  return { events, total, removal: await removalOf(deps, id) };
}

const removalOf = ({ db }: ServiceDeps, id: string) => findRemoval(db, { kind: "install", id });

export async function statsOf({ db }: ServiceDeps) {
  const { total, byState, discoveredLastHour } = await countInstalls(db);
  const all = Object.fromEntries(INSTALL_STATES.map((state) => [state, byState[state] ?? 0]));
  return { total, byState: all, discoveredLastHour, installing: byState.installing ?? 0 };
}

/** Installing for longer than an attempt may take; none where attempts may take for ever. */
export async function stalledInstalls(
  { db }: ServiceDeps,
  timeout: Duration,
  page: PageWish,
): Promise<{ readonly installs: readonly InstallRecord[]; readonly total: number }> {
  if (timeout === 0) return { installs: [], total: 0 };
  const { ids, total } = await listStalled(db, timeout, page);
  const byId = new Map((await loadInstalls(db, ids)).things.map((install) => [install.id as string, install]));
  return { installs: ids.flatMap((id) => byId.get(id) ?? []), total };
}
