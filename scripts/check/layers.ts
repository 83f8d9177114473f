import type { Import } from "./imports.ts";
import { isTest } from "./source-files.ts";

interface Layer {
  /** Layers that it may import, besides itself. */
  readonly imports: readonly string[];
  /** Single files of other layers that it may import as well. */
  readonly files?: readonly string[];
  /** Packages that it may import; nobody else may. */
  readonly packages: readonly string[];
  /** Left out: built-in modules of Node are allowed. */
  readonly builtins?: false;
}

const BELOW_STORE = ["kernel", "capabilities", "lifecycles", "runs"];
const BELOW_WIRING = [
  ...BELOW_STORE,
  "store",
  "engine",
  "services",
  "api",
  "providers",
  "telemetry",
  "config",
  "contract",
];

/** All that is in `console/package.json`, and nothing of the server's: the console runs in browsers, and talks to the API alone. */
const CONSOLE_PACKAGES = [
  "@bufbuild/protobuf",
  "@connectrpc/connect",
  "@connectrpc/connect-web",
  "@dagrejs/dagre",
  "@mantine/core",
  "@mantine/hooks",
  "@tanstack/react-query",
  "@tanstack/react-router",
  "@tanstack/react-virtual",
  "react",
  "react-dom",
];

/**
 * Who may import whom. Nobody is allowed `wiring`, `main` or `providers` but those that put all together, so that every other
 * part can be read and tested without the whole.
 */
// biome-ignore format: a table is read by its columns
export const LAYERS: Readonly<Record<string, Layer>> = {
  kernel:       { imports: [], packages: [], builtins: false },
  capabilities: { imports: ["kernel"], packages: [] },
  conformance:  { imports: ["kernel", "capabilities"], packages: ["vitest"] },
  lifecycles:   { imports: ["kernel", "capabilities"], packages: [] },
  runs:         { imports: ["kernel", "capabilities", "lifecycles"], packages: [] },
  store:        { imports: BELOW_STORE, packages: ["pg", "zod"] },
  telemetry:    { imports: ["kernel"], packages: ["pino", "prom-client", "@opentelemetry/api"] },
  engine:       { imports: [...BELOW_STORE, "store", "telemetry"], packages: [] },
  services:     { imports: [...BELOW_STORE, "store"], packages: ["zod"] },
  api:          { imports: ["kernel", "services", "contract", "telemetry"], packages: ["fastify", "@connectrpc/connect", "@connectrpc/connect-node", "@bufbuild/protobuf", "jose", "openid-client", "zod"] },
  providers:    { imports: ["kernel", "capabilities"], packages: ["@opentelemetry/api", "lru-cache", "ssh2", "yaml"] },
  config:       { imports: ["kernel"], files: ["src/services/call/roles.ts"], packages: ["yaml", "zod"] },
  wiring:       { imports: BELOW_WIRING, packages: ["zod"] },
  main:         { imports: [...BELOW_WIRING, "wiring"], packages: [] },
  cli:          { imports: ["contract"], files: ["src/config/build.ts"], packages: ["commander", "string-width", "yaml", "@connectrpc/connect", "@connectrpc/connect-node", "@bufbuild/protobuf"] },
  contract:     { imports: [], packages: ["@bufbuild/protobuf"], builtins: false },
  examples:     { imports: ["contract"], packages: ["@connectrpc/connect", "@connectrpc/connect-node"] },
  console:      { imports: ["contract"], packages: CONSOLE_PACKAGES, builtins: false },
  simulator:    { imports: [], packages: ["ssh2", "yaml", "zod"] },
};

/** Test code, measurements and tools see everything. */
const FREE = new Set(["bench", "scripts", "test"]);
const TEST_PACKAGES = new Set(["vitest", "fast-check"]);

/** The layer of a file; undefined for a place that the table does not know. */
export function layerOf(path: string): string | undefined {
  const [top = "", second = ""] = path.split("/");
  if (FREE.has(top)) return top;
  if (path.startsWith("src/capabilities/conformance/")) return "conformance";
  const name = top === "src" ? second.replace(/\..*$/, "") : top;
  return Object.hasOwn(LAYERS, name) ? name : undefined;
}

/** What is wrong with an import, for people; undefined when it is allowed. */
export function judgeImport({ from, line, target }: Import): string | undefined {
  const fault = faultOf(from, target);
  return fault === undefined ? undefined : `${from}:${line} ${fault}`;
}

function faultOf(from: string, target: Import["target"]): string | undefined {
  const name = layerOf(from);
  if (name === undefined) return "is in no layer: give its folder a row in scripts/check/layers.ts";
  if (FREE.has(name)) return undefined;
  if (isTest(from)) return faultOfTest(name, target);
  if (target.kind === "file") return faultOfFile(name, from, target.path);
  const layer = LAYERS[name];
  switch (target.kind) {
    case "computed":
      return "imports what only a running program knows; name the module";
    case "builtin":
      return layer?.builtins === false ? `imports ${target.name}, but ${name} does no input and output` : undefined;
    case "package":
      if (layer?.packages.includes(target.name)) return undefined;
      return `imports the package ${target.name}, which is not for ${name}`;
  }
}

function faultOfFile(name: string, from: string, path: string): string | undefined {
  const to = layerOf(path);
  if (to === name) return faultBetweenProviders(from, path);
  const layer = LAYERS[name];
  if (layer === undefined || (to !== undefined && layer.imports.includes(to)) || layer.files?.includes(path)) {
    return undefined;
  }
  const may = layer.imports.length === 0 ? "nothing outside itself" : `only ${layer.imports.join(", ")}`;
  return `imports ${path}, but ${name} may import ${may}`;
}

/** The technologies do not know each other; what they share is in `transport`. */
function faultBetweenProviders(from: string, path: string): string | undefined {
  const technology = /^src\/providers\/([^/]+)\//;
  const [, own] = technology.exec(from) ?? [];
  const [, other] = technology.exec(path) ?? [];
  if (own === undefined || other === undefined || own === other || other === "transport") return undefined;
  return `imports ${path}, but providers do not know each other`;
}

/** Unit tests may reach for whatever they compare with; those of the simulator may not, since it must stand alone. */
function faultOfTest(name: string, target: Import["target"]): string | undefined {
  if (name !== "simulator") return undefined;
  if (target.kind === "file" && layerOf(target.path) !== "simulator") {
    return `imports ${target.path}, but the simulator stands alone, its tests too`;
  }
  if (target.kind !== "package" || TEST_PACKAGES.has(target.name)) return undefined;
  return LAYERS.simulator?.packages.includes(target.name) ? undefined : `imports the package ${target.name}`;
}
