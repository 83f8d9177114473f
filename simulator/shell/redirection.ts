import type { Machine } from "../devices/machine.ts";
import { readFileOf, writeFileOf } from "./machine-files.ts";
import { type CommandIo, inputOf } from "./shell-session.ts";
import type { Redirect, Word } from "./syntax.ts";

/** Input and output of a command with its redirections; `finish` writes the files when the command is over. */
export async function redirect(
  redirects: readonly Redirect[],
  from: { readonly outer: CommandIo; readonly machine: Machine; text(word: Word): Promise<string> },
): Promise<{ io: CommandIo; finish: () => void }> {
  const { outer, machine, text } = from;
  const sinks = { 1: outer.out, 2: outer.error };
  const files: { path: string; text: string }[] = [];
  let stdin = outer.stdin;
  for (const each of redirects) {
    if (each.kind === "merge") sinks[each.from] = sinks[each.to];
    else if (each.kind === "here") stdin = inputOf(await text(each.body));
    else if (each.kind === "in") stdin = inputOf(readFileOf(machine, await text(each.file)) ?? "");
    else {
      const path = await text(each.to);
      const file = { path, text: each.append ? (readFileOf(machine, path) ?? "") : "" };
      files.push(file);
      sinks[each.from] = (more) => {
        file.text += more;
      };
    }
  }
  return {
    io: { stdin, out: sinks[1], error: sinks[2] },
    finish() {
      for (const { path, text: whole } of files) if (path !== "/dev/null") writeFileOf(machine, path, whole);
    },
  };
}
