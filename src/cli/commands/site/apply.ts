import { EXIT } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/output.ts";
import { printList } from "../../terminal/printing.ts";
import type { Tone } from "../../terminal/table.ts";
import { type Change, differenceOf } from "./difference.ts";
import { affectedBy, type SectionChange, tellAffected } from "./racks-affected.ts";
import { openSections, type Section } from "./sections.ts";
import { readSiteFile } from "./site-file.ts";

export interface ApplyOptions extends ConfirmOptions {
  readonly file: string;
  readonly dryRun?: boolean;
  readonly prune?: boolean;
  readonly resendCredentials?: boolean;
}

/** One line of the difference. */
interface Line {
  readonly action: Change["action"];
  readonly noun: string;
  readonly id: string;
  readonly fields: readonly string[];
  readonly atOnce: number;
  readonly carryOut: () => Promise<unknown>;
  result: string;
}

/** Shows the difference, and then makes it. What was done before a refusal stays: applying the file again goes on from there. */
export async function applySite(session: Session, options: ApplyOptions): Promise<number | undefined> {
  const file = await readSiteFile(session, options.file);
  const sections = await openSections(session);
  const choices = { prune: options.prune ?? false, resend: options.resendCredentials ?? false };
  const lines: Line[] = [];
  const removals: Line[] = [];
  const changes: SectionChange[] = [];
  for (const each of sections) {
    const entries = file[each.name];
    if (entries === undefined) continue;
    const wanted = entries.map((entry, at) => each.wanted(entry, `${each.name}[${at}]`));
    const known = await each.known(wanted);
    const byKey = new Map(known.map((row) => [row.key, row]));
    for (const change of differenceOf(wanted, known, choices)) {
      const { key } = change.action === "remove" ? change.known : change.wanted;
      changes.push({ section: each.name, change, known: byKey.get(key) });
      const line = lineOf(each, change);
      // What others name goes after them.
      if (change.action === "remove") removals.unshift(line);
      else lines.push(line);
    }
  }
  const all = [...lines, ...removals];
  await tellAffected(session, affectedBy(changes));
  if (options.dryRun || all.length === 0) return print(session, all);
  if (!options.yes) {
    await print(session, all);
    await confirm(session, { what: `Make these ${all.length} changes?`, canAsk: options.file !== "-" });
  }
  // What others name is on record before they are put.
  for (const together of groupsOf(all)) await carryOutAll(together);
  await print(session, all);
  return all.some(({ result }) => result !== DONE) ? EXIT.operationFailed : undefined;
}

const DONE = "done";

/** Lines of one list, one after the other; between two of these groups all is done. */
function groupsOf(lines: readonly Line[]): readonly (readonly Line[])[] {
  const groups: Line[][] = [];
  for (const line of lines) {
    const last = groups.at(-1);
    if (last?.[0]?.noun === line.noun && (last[0].action === "remove") === (line.action === "remove")) last.push(line);
    else groups.push([line]);
  }
  return groups;
}

/** Each worker has a portion of the list: neighbours are in one rack, and would wait for each other. */
async function carryOutAll(lines: readonly Line[]): Promise<void> {
  const portion = Math.ceil(lines.length / (lines[0]?.atOnce ?? 1));
  const worker = async (some: readonly Line[]) => {
    for (const line of some)
      line.result = await line.carryOut().then(
        () => DONE,
        (error: unknown) => `refused: ${error instanceof Error ? error.message : String(error)}`,
      );
  };
  const portions = Array.from({ length: Math.ceil(lines.length / portion) }, (_, at) =>
    lines.slice(at * portion, (at + 1) * portion),
  );
  await Promise.all(portions.map(worker));
}

function lineOf({ noun, atOnce }: Section, change: Change): Line {
  if (change.action === "remove") {
    const { key, remove } = change.known;
    return { action: "remove", noun, id: key, fields: [], atOnce, carryOut: async () => remove?.(), result: "" };
  }
  const { key, put } = change.wanted;
  const fields = change.action === "update" ? change.fields : [];
  const carryOut = () => put(change.action === "add");
  return { action: change.action, noun, id: key, fields, atOnce, carryOut, result: "" };
}

const TONES: { readonly [action in Change["action"]]: Tone } = { add: "good", update: "busy", remove: "bad" };

const columns: readonly Column<Line>[] = [
  { title: "ACTION", cell: ({ action }) => action, tone: ({ action }) => TONES[action] },
  { title: "WHAT", cell: ({ noun }) => noun },
  { title: "ID", cell: ({ id }) => id },
  { title: "DIFFERS IN", cell: ({ fields }) => fields.join(" ") },
  {
    title: "RESULT",
    cell: ({ result }) => result,
    tone: ({ result }) => (result === "" || result === DONE ? undefined : "bad"),
  },
];

async function print(session: Session, items: readonly Line[]): Promise<undefined> {
  const json = ({ action, noun, id, fields, result }: Line) => ({
    action,
    what: noun,
    id,
    differs_in: [...fields],
    result,
  });
  await printList(session, { items, columns, json }, "Nothing differs: the server has what the file says.");
}
