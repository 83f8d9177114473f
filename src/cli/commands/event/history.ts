import { type Command, InvalidArgumentError, Option } from "commander";
import { EVENT_TYPES } from "../../client/event-types.ts";
import type { Run } from "../../client/session.ts";
import type { HistoryOptions } from "./history-read.ts";

export const positiveNumber = (text: string): number => {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1) throw new InvalidArgumentError("A whole number from 1 is wanted.");
  return number;
};

export const eventTypes = (): Option =>
  new Option("--type <type...>", "only events of these types; several values, or the option several times").choices(
    EVENT_TYPES,
  );

/** What `history KIND ID` and `power-shelf history ID` have in common. */
export const addHistoryOptions = (command: Command): Command =>
  command.option("-n, --limit <count>", "the newest so many entries", positiveNumber, 100).addOption(eventTypes());

export function addHistoryCommand(program: Command, run: Run): void {
  addHistoryOptions(
    program
      .command("history")
      .argument("<kind>", "such as power_shelf")
      .argument("<id>", "the thing")
      .description("what happened to a thing, who did it and why; the newest last"),
  ).action((kind: string, id: string, options: HistoryOptions) =>
    run(async (session) => (await import("./history-read.ts")).showHistory(session, kind, id, options)),
  );
}
