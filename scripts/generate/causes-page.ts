import { CAUSES, type CauseSpec, FACTS, PEERS } from "../../src/kernel/causes.ts";
import { code, page, pageHead, table } from "./markdown.ts";

/** What follows a failure, for people. */
const FOLLOWS = { retry: "tried again", fail: "given up", intervene: "a person" } as const;

/** Every cause that a failure can have. */
export function causesPage(): string {
  const causes: readonly (readonly [string, CauseSpec])[] = Object.entries(CAUSES);
  const rows = causes.map(([name, { doc, helps, disposition, facts }]) => [
    code(name),
    doc,
    helps,
    FOLLOWS[disposition],
    facts.map(code).join(" "),
  ]);
  const described = (names: Readonly<Record<string, string>>) =>
    Object.entries(names).map(([name, doc]) => [code(name), doc]);
  return page(
    pageHead("Causes", "`src/kernel/causes.ts`"),
    "Work on a device that fails has one cause of this list, facts about it, and a message for people. Programs go by the cause: messages may change, causes do not.",
    table(["Cause", "Meaning", "What helps", "Usually followed by", "Facts"], rows),
    "## Facts",
    table(["Fact", "Meaning"], described(FACTS)),
    "## Who failed",
    "`at` is one of these:",
    table(["`at`", "Meaning"], described(PEERS)),
  );
}
