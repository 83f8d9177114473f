import type { Machine } from "../devices/machine.ts";
import { readFileOf, writeFileOf } from "./machine-files.ts";
import { type CommandIo, inputOf } from "./shell-session.ts";
import type { Redirect, Word } from "./syntax.ts";

/**
 * Input and output of a command with its redirections. What a command writes is in its file at once, as others may be reading it;
 * `finish` makes the files of those that wrote nothing.
 */
export async function redirect(
  redirects: readonly Redirect[],
  from: {
    readonly outer: CommandIo;
    readonly machine: Machine;
    readonly signal: AbortSignal;
    text(word: Word): Promise<string>;
  },
): Promise<{ io: CommandIo; finish: () => void }> {
  const { outer, machine, signal, text } = from;
  const sinks = { 1: outer.out, 2: outer.error };
  const files: { path: string; text: string; written: boolean }[] = [];
  // Whoever was ended, or whose machine went down, writes no more.
  const save = ({ path, text: whole }: { path: string; text: string }) => {
    if (path !== "/dev/null" && !signal.aborted && machine.upBootId !== undefined) writeFileOf(machine, path, whole);
  };
  let stdin = outer.stdin;
  for (const each of redirects) {
    if (each.kind === "merge") sinks[each.from] = sinks[each.to];
    else if (each.kind === "here") stdin = inputOf(await text(each.body));
    else if (each.kind === "in") stdin = inputOf(readFileOf(machine, await text(each.file)) ?? "");
    else {
      const path = await text(each.to);
      const file = { path, text: each.append ? (readFileOf(machine, path) ?? "") : "", written: false };
      files.push(file);
      sinks[each.from] = (more) => {
        file.text += more;
        file.written = true;
        save(file);
      };
    }
  }
  return {
    io: { stdin, out: sinks[1], error: sinks[2] },
    finish() {
      for (const file of files) if (!file.written) save(file);
    },
  };
}
