import type { CommandCall } from "./commands.ts";
import { filesUnder, readFileOf, writeFileOf } from "./machine-files.ts";

export async function tee({ args, io, session }: CommandCall): Promise<number> {
  const text = await io.stdin();
  io.out(text);
  const append = args.includes("-a");
  for (const path of args.filter((arg) => !arg.startsWith("-"))) {
    const before = append ? (readFileOf(session.machine, path) ?? "") : "";
    writeFileOf(session.machine, path, before + text);
  }
  return 0;
}

export function rm({ args, io, session }: CommandCall): number {
  let code = 0;
  const forced = args.some((arg) => /^-[a-z]*f/.test(arg));
  const deep = args.some((arg) => /^-[a-z]*r/i.test(arg));
  for (const path of args.filter((arg) => !arg.startsWith("-"))) {
    const inside = deep ? filesUnder(session.machine, path) : [];
    for (const each of inside) writeFileOf(session.machine, each, undefined);
    if (inside.length > 0) continue;
    if (readFileOf(session.machine, path) !== undefined) writeFileOf(session.machine, path, undefined);
    else if (!forced) {
      io.error(`rm: cannot remove '${path}': No such file or directory\n`);
      code = 1;
    }
  }
  return code;
}

/** One file to another name, over whatever is there. */
export function mv({ args, io, session: { machine } }: CommandCall): number {
  const [from = "", to = ""] = args.filter((arg) => !arg.startsWith("-"));
  const text = readFileOf(machine, from);
  if (text === undefined) {
    io.error(`mv: cannot stat '${from}': No such file or directory\n`);
    return 1;
  }
  if (!writeFileOf(machine, to, text)) {
    io.error(`mv: cannot move '${from}' to '${to}': No space left on device\n`);
    return 1;
  }
  writeFileOf(machine, from, undefined);
  return 0;
}

/** Directories are there with the first file in them; one that is there cannot be made, which is how scripts find out who was first. */
export function mkdir({ args, io, session: { machine } }: CommandCall): number {
  if (args.some((arg) => /^-[a-z]*p/.test(arg))) return 0;
  const there = args.find((arg) => !arg.startsWith("-") && filesUnder(machine, arg).length > 0);
  if (there === undefined) return 0;
  io.error(`mkdir: cannot create directory '${there}': File exists\n`);
  return 1;
}
