import { mkdirSync, renameSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { type Plugin, rolldown } from "rolldown";
import { type ProcessBench, ROOT, type StartedProcess, type StartOptions } from "./process-bench.ts";

export interface ProgramOptions extends Pick<StartOptions, "args" | "env"> {
  /** As it is called below `test/support/processes`, or from the root of the repository on. */
  readonly program: string;
}

/**
 * A program of ours as a process that lives for a moment. All of it is one file then, packages included: to load a thousand of them
 * costs more than what the process is there to do.
 */
export async function startProgram(
  bench: ProcessBench,
  { program, args, env = {} }: ProgramOptions,
): Promise<StartedProcess> {
  const path = program.includes("/") ? join(ROOT, program) : join(import.meta.dirname, program);
  return bench.start({ command: process.execPath, args: [await bundleOf(path), ...args], env });
}

/** Where Node finds the packages that cannot be bundled, and what it compiled of the same file before. */
const DIRECTORY = join(ROOT, "node_modules", ".cache", "millwright-tests");

/** Made once by each process that asks: never older than the sources. */
const bundles = new Map<string, Promise<string>>();

function bundleOf(program: string): Promise<string> {
  const made = bundles.get(program) ?? makeBundle(program);
  bundles.set(program, made);
  return made;
}

async function makeBundle(program: string): Promise<string> {
  mkdirSync(DIRECTORY, { recursive: true });
  const name = `${basename(dirname(program))}-${basename(program, ".ts")}`;
  const unfinished = join(DIRECTORY, `${name}-${process.pid}.mjs`);
  const made = await rolldown({ input: program, platform: "node", plugins: [keepPlaces(program)], logLevel: "silent" });
  await made.write({ file: unfinished, format: "esm", codeSplitting: false });
  await made.close();
  const file = join(DIRECTORY, `${name}.mjs`);
  renameSync(unfinished, file);
  return file;
}

/** Sources find the files beside them as before. Only the program itself is where it was started: it asks whether it was. */
const keepPlaces = (program: string): Plugin => ({
  name: "keep-places",
  resolveId(id, importer = "") {
    if (id === "pg-native" || id === "cpu-features") return { id, external: true };
    return id.endsWith(".node") ? { id: resolve(dirname(importer), id), external: true } : undefined;
  },
  transform(code, id) {
    if (id === program || !id.startsWith("/")) return undefined;
    const places = new Map([
      ["import.meta.dirname", dirname(id)],
      ["import.meta.filename", id],
      ["import.meta.url", `file://${id}`],
      ["__dirname", dirname(id)],
      ["__filename", id],
    ]);
    return code.replace(/\bimport\.meta\.(?:dirname|filename|url)\b|\b__(?:dirname|filename)\b/g, (found) =>
      JSON.stringify(places.get(found)),
    );
  },
});
