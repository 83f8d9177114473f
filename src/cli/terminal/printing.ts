import type { Session, Sink } from "../client/session.ts";
import { type Listing, type OneThing, renderList, renderOne } from "./output.ts";
import { printable } from "./printable.ts";

/** Prints a list; with nothing in it, people are told so beside the output, and programs get an empty list. */
export async function printList<T>(session: Session, listing: Listing<T>, whenEmpty: string): Promise<void> {
  const style = session.style();
  if (listing.items.length === 0 && style.format === "table") {
    printLine(session.terminal.stderr, whenEmpty);
    return;
  }
  session.terminal.stdout.write(await renderList(listing, style));
}

export async function printOne<T>(session: Session, thing: OneThing<T>): Promise<void> {
  session.terminal.stdout.write(await renderOne(thing, session.style()));
}

/** One line, whatever the texts within it hold. */
export const printLine = (sink: Sink, text: string): void => sink.write(`${printable(text)}\n`);

/** The answer to a command that changes something: a sentence for people, an object for programs. */
export async function printDone(
  session: Session,
  sentence: string,
  facts: { readonly [name: string]: string | number | readonly string[] },
): Promise<void> {
  const style = session.style();
  if (style.format === "table") {
    printLine(session.terminal.stdout, sentence);
    return;
  }
  const names = Object.keys(facts);
  const text = (name: string) => [facts[name] ?? ""].flat().join(" ");
  await printOne(session, {
    item: facts,
    columns: names.map((name) => ({ title: name, cell: () => text(name) })),
    json: () =>
      Object.fromEntries(names.map((name) => [name, structuredClone(facts[name]) as string | number | string[]])),
    details: [],
  });
}
