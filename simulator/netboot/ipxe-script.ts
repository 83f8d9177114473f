/** What a script makes iPXE do, and what it is answered. */
export interface Firmware {
  /** The text of a script. Throws when it cannot be had. */
  fetchScript(url: string): Promise<string>;
  /** Loads a file and keeps nothing of it. Throws when it cannot be had. */
  load(url: string): Promise<void>;
  sleep(seconds: number): Promise<void>;
  echo(text: string): void;
  /** What iPXE knows of the machine: `netX/mac`. */
  setting(name: string): string;
}

/** How a script ended. */
export type ScriptEnd =
  | { readonly type: "disk" }
  | { readonly type: "kernel"; readonly url: string; readonly words: Readonly<Record<string, string>> };

/** A chain of scripts that leads nowhere ends on the disk. */
const MOST_COMMANDS = 500;

/** Follows a script of iPXE's, command by command, as far as scripts of boot servers go. */
export async function followScript(first: string, firmware: Firmware): Promise<ScriptEnd> {
  let lines = linesOf(first);
  let at = 0;
  let kernel: Extract<ScriptEnd, { type: "kernel" }> | undefined;
  for (let commands = 0; commands < MOST_COMMANDS; commands += 1) {
    const line = lines[at];
    if (line === undefined) return { type: "disk" };
    at += 1;
    const [command = "", orElse] = line.split(" || ");
    const [verb = "", ...args] = fill(command, firmware).split(/\s+/);
    const operands = args.filter((arg) => !arg.startsWith("--"));
    try {
      if (verb === "exit") return { type: "disk" };
      if (verb === "boot" && kernel !== undefined) return kernel;
      if (verb === "echo") firmware.echo(args.join(" "));
      else if (verb === "sleep") await firmware.sleep(Number(args[0]) || 0);
      else if (verb === "goto") at = labelAt(lines, args[0]);
      else if (verb === "chain") {
        lines = linesOf(await firmware.fetchScript(operands.at(-1) ?? ""));
        at = 0;
      } else if (verb === "kernel") {
        const [url = "", ...words] = operands;
        await firmware.load(url);
        kernel = { type: "kernel", url, words: wordsOf(words) };
      } else if (verb === "initrd") await firmware.load(operands.at(-1) ?? "");
      else if (!verb.startsWith(":")) throw new Error(`${verb}: no such command`);
    } catch (error) {
      const label = /^goto (\S+)$/.exec(orElse ?? "")?.[1];
      firmware.echo(error instanceof Error ? error.message : String(error));
      if (label === undefined) return { type: "disk" };
      at = labelAt(lines, label);
    }
  }
  return { type: "disk" };
}

function linesOf(script: string): readonly string[] {
  const [first = "", ...lines] = script.split(/\r?\n/).map((line) => line.trim());
  if (first !== "#!ipxe") throw new Error("that is no script of iPXE's");
  return lines.filter((line) => line !== "" && !line.startsWith("#"));
}

/** Past the end if there is no such label: the script ends there. */
function labelAt(lines: readonly string[], label: string | undefined): number {
  const at = lines.indexOf(`:${label}`);
  return at === -1 ? lines.length : at;
}

/** `${serial:uristring}` is the setting, fit for an address. */
const fill = (text: string, { setting }: Firmware): string =>
  text.replace(/\$\{([\w/.-]+)(:uristring)?\}/g, (_, name: string, escaped?: string) =>
    escaped === undefined ? setting(name) : encodeURIComponent(setting(name)),
  );

/** `millwright.server=…` as `server`. Words of other kernels are not ours. */
const wordsOf = (words: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    words.flatMap((word) => {
      const [, name, value] = /^millwright\.(\w+)=(.*)$/.exec(word) ?? [];
      return name === undefined ? [] : [[name, value ?? ""]];
    }),
  );
