import { EXIT, isConnectError } from "../../client/errors.ts";
import { followEvents } from "../../client/events.ts";
import type { Session } from "../../client/session.ts";
import { createLiveView } from "../../terminal/live-view.ts";
import { type Listing, type OneThing, renderChange, renderList, renderOne, type Style } from "../../terminal/output.ts";
import { jsonText } from "../../terminal/printable.ts";

/** Things of one kind, as they are watched. */
export interface WatchedKind<T> {
  /** As events name it. */
  readonly kind: string;
  readonly idOf: (item: T) => string;
  /** The thing as it is now; undefined once it is gone. */
  readonly read: (session: Session, id: string) => Promise<T | undefined>;
  readonly listing: (style: Style) => Omit<Listing<T>, "items">;
}

export interface WatchedList<T> {
  readonly list: () => Promise<readonly T[]>;
  /** The thing, if the list still has it. */
  readonly readListed: (id: string) => Promise<T | undefined>;
  readonly order: (left: T, right: T) => number;
  /** What happens to things of these kinds changes rows of the list as well, without an event of their own. */
  readonly parts?: readonly string[];
}

/** Parts change often and together: on a terminal the whole list is then read again, this often at most. */
const REREAD_EVERY_MS = 5_000;

/** The table, kept current. Elsewhere than on a terminal: the list, then a line for each change. */
export async function watchList<T>(session: Session, of: WatchedKind<T>, watched: WatchedList<T>): Promise<number> {
  const { list, readListed, order, parts = [] } = watched;
  const shown = new Map<string, T>();
  let isStale = false;
  let readAt = 0;
  const readAll = async () => {
    const items = await list();
    shown.clear();
    for (const item of items) shown.set(of.idOf(item), item);
    isStale = false;
    readAt = session.terminal.now().getTime();
  };
  const view = createLiveView(session, async (style) => {
    if (isStale && style.now.getTime() - readAt >= REREAD_EVERY_MS) await readAll();
    return renderList({ items: [...shown.values()].sort(order), ...of.listing(style) }, style);
  });
  const kinds = [of.kind, ...parts];
  for await (const followed of followEvents(session, { kinds, from: "now" }, session.signal)) {
    if (followed.type === "ready") {
      await readAll();
      await view.start();
      continue;
    }
    const { kind, id } = followed.event;
    if (kind !== of.kind) {
      isStale = true;
      continue;
    }
    const wasListed = shown.has(id);
    const listed = await readListed(id);
    if (listed) shown.set(id, listed);
    else shown.delete(id);
    if (!wasListed && !listed) continue;
    await view.change(changeOf(of, listed ?? (await of.read(session, id)), id));
  }
  await view.stop();
  return EXIT.interrupted;
}

export interface WatchedThing<T> {
  readonly id: string;
  readonly thing: (item: T, style: Style) => OneThing<T> | Promise<OneThing<T>>;
  /** What it consists of: their events change what is shown of it. */
  readonly parts?: { readonly kinds: readonly string[]; readonly idsOf: (item: T) => readonly string[] };
}

/** One thing, kept current. */
export async function watchOne<T>(session: Session, of: WatchedKind<T>, watched: WatchedThing<T>): Promise<number> {
  const { id, thing, parts } = watched;
  let item = await of.read(session, id);
  let isShown = false;
  const view = createLiveView(session, async (style) =>
    item ? renderOne(await thing(item, style), style) : goneLine(id, style.format),
  );
  const partsNow = (): readonly string[] => (item && parts ? parts.idsOf(item) : []);
  const end = async (code: number) => {
    await view.stop();
    return code;
  };
  while (!session.signal.aborted) {
    const partIds = partsNow();
    const filter = { kinds: [of.kind, ...(parts?.kinds ?? [])], ids: [id, ...partIds], from: "now" } as const;
    for await (const followed of followEvents(session, filter, session.signal)) {
      item = await of.read(session, id);
      if (!isShown) await view.start();
      else if (followed.type === "event") await view.change(changeOf(of, item, id));
      isShown = true;
      if (!item) return end(EXIT.notFound);
      // It consists of other things now: these are followed instead.
      if (partsNow().join() !== partIds.join()) break;
    }
  }
  return end(EXIT.interrupted);
}

const changeOf =
  <T>(of: WatchedKind<T>, item: T | undefined, id: string) =>
  async (style: Style) =>
    item ? renderChange(of.listing(style), item, style) : goneLine(id, style.format);

/** csv and yaml have no row for a thing without facts. */
function goneLine(id: string, format: Style["format"]): string {
  if (format === "json") return `${jsonText({ id, gone: true })}\n`;
  return format === "table" ? `${id}  gone\n` : "";
}

/** What `read` answers; undefined where the server knows no such thing. */
export async function unlessGone<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    const { Code } = await import("@connectrpc/connect");
    if (isConnectError(error) && error.code === Code.NotFound) return undefined;
    throw error;
  }
}
