import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** A built file, in each form that it is sent in. */
export interface ConsoleFile {
  readonly type: string;
  readonly plain: Buffer;
  readonly br?: Buffer;
  readonly gzip?: Buffer;
}

export interface ConsoleFiles {
  /** The page that all paths of the console have; undefined while nothing is built. */
  readDocument(): string | undefined;
  /** Undefined: there is none of that name. */
  readAsset(name: string): ConsoleFile | undefined;
}

const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  woff2: "font/woff2",
  png: "image/png",
};
/** As the build names them. Nothing else is looked for, so that no name can lead out of the folder. */
const ASSET = /^[\w-]+(?:\.[\w-]+)*\.(js|css|svg|woff2|png)$/;

/**
 * The built console, read from `directory` as it is asked for and kept: `npm start` may still be building it when the server is up,
 * and may have built another one since.
 */
export function createConsoleFiles(directory: string): ConsoleFiles {
  let builtAt = 0;
  let document: string | undefined;
  const assets = new Map<string, ConsoleFile>();
  return {
    readDocument() {
      const path = join(directory, "index.html");
      const changed = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
      if (changed === undefined) return undefined;
      if (changed !== builtAt) {
        document = readFileSync(path, "utf8");
        builtAt = changed;
        assets.clear();
      }
      return document;
    },
    readAsset(name) {
      const type = TYPES[ASSET.exec(name)?.[1] ?? ""];
      if (type === undefined) return undefined;
      const found = assets.get(name) ?? readForms(join(directory, "assets", name), type);
      if (found) assets.set(name, found);
      return found;
    },
  };
}

function readForms(path: string, type: string): ConsoleFile | undefined {
  const [plain, br, gzip] = [readIfThere(path), readIfThere(`${path}.br`), readIfThere(`${path}.gz`)];
  return plain && { type, plain, ...(br && { br }), ...(gzip && { gzip }) };
}

function readIfThere(path: string): Buffer | undefined {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ? readFileSync(path) : undefined;
}
