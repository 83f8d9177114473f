import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { loadConfig } from "../../../src/config/load.ts";
import { needing } from "../../support/counterparts/needing.ts";
import { ROOT } from "../../support/processes/process-bench.ts";

const DEPLOY = join(ROOT, "deploy");
const missing = (program: string, itsPackage: string): string =>
  spawnSync("sh", ["-c", `command -v ${program}`]).status === 0 ? "" : itsPackage;
const kubectl = missing("kubectl", "kubernetes-client");
const go = missing("go", "golang-go");
const systemd = missing("systemd-analyze", "systemd");
const textOf = (...path: string[]): string => readFileSync(join(DEPLOY, ...path), "utf8");

interface Container {
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly [field: string]: unknown;
}
interface Document {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly Container[];
        readonly volumes: readonly { readonly name: string; readonly secret?: { readonly defaultMode: number } }[];
        readonly [field: string]: unknown;
      };
    };
  };
  readonly data: { readonly "millwright.yaml": string };
}

/** As Kubernetes reads YAML: 0440 is a number of base eight. */
const documentsOf = (text: string): Document[] =>
  parseAllDocuments(text, { version: "1.1" }).map((each) => each.toJS() as Document);

function only(documents: readonly Document[], kind: string): Document {
  const found = documents.filter((each) => each.kind === kind);
  expect(found, kind).toHaveLength(1);
  return found[0] as Document;
}

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "millwright-deploy-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** What the server makes of a configuration file and an environment: it throws what it would refuse at the start. */
function load(text: string, env: Readonly<Record<string, string>>) {
  const file = join(directory, "millwright.yaml");
  writeFileSync(file, text);
  return loadConfig({ env, argv: ["--config", file], profile: "serve" }).config;
}

const DATABASE = { MILLWRIGHT_DATABASE_URL: "postgresql://millwright@db.example/millwright" };
const TOKENS = JSON.stringify([{ name: "first-admin", roles: ["admin"], sha256: "0".repeat(64) }]);

/** Both ways to Kubernetes must run the same thing. */
function expectServable(documents: readonly Document[]): void {
  const { spec } = only(documents, "Deployment").spec.template;
  const [container] = spec.containers as [Container];
  const config = load(only(documents, "ConfigMap").data["millwright.yaml"], {
    ...DATABASE,
    XDG_STATE_HOME: "/var/lib",
  });
  const mounts = container.volumeMounts.map(({ mountPath }) => mountPath);
  for (const path of [config.tls.certFile, config.tls.keyFile, config.secretKeyFile, config.firmware.directory]) {
    expect(mounts.some((mount) => path?.startsWith(mount))).toBe(true);
  }
  expect(mounts).toContain(config.dataDir);
  expect(spec.volumes.map(({ name }) => name).sort()).toEqual(container.volumeMounts.map(({ name }) => name).sort());
  const known = Object.fromEntries(
    container.env.map(({ name }) => [name, name.endsWith("TOKENS") ? TOKENS : "postgresql://db/m"]),
  );
  expect(() => load("{}", { ...known, XDG_STATE_HOME: "/var/lib" })).not.toThrow();
  // What a service must not have, and how a replica tells that it works.
  expect(container).toMatchObject({
    securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
    livenessProbe: { httpGet: { path: "/healthz" } },
    readinessProbe: { httpGet: { path: "/readyz" } },
    startupProbe: { httpGet: { path: "/healthz" } },
  });
  expect(spec).toMatchObject({ enableServiceLinks: false, securityContext: { runAsNonRoot: true, fsGroup: 10_001 } });
  expect(spec.volumes.flatMap(({ secret }) => secret?.defaultMode ?? [])).toEqual([0o440, 0o440]);
}

describe("Kubernetes", () => {
  test.skipIf(kubectl !== "")(
    needing("kustomize makes a deployment whose configuration the server takes", kubectl),
    () => {
      const documents = documentsOf(
        execFileSync("kubectl", ["kustomize", join(DEPLOY, "kubernetes")], { encoding: "utf8" }),
      );
      expect(documents.map(({ kind }) => kind).sort()).toEqual(
        [
          "ConfigMap",
          "Deployment",
          "Namespace",
          "NetworkPolicy",
          "PodDisruptionBudget",
          "Service",
          "ServiceAccount",
        ].sort(),
      );
      expectServable(documents);
    },
  );

  test.skipIf(go !== "")(needing("the chart makes the same, in Helm's template language", go), () => {
    const chart = join(DEPLOY, "helm", "millwright");
    const templates = readdirSync(join(chart, "templates")).map((name) => join(chart, "templates", name));
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
    const about = parse(textOf("helm", "millwright", "Chart.yaml")) as { version: string; appVersion: string };
    expect(about).toMatchObject({ version, appVersion: version });
    const input = {
      Values: parse(textOf("helm", "millwright", "values.yaml")) as unknown,
      Release: { Name: "millwright" },
      Chart: { AppVersion: about.appVersion },
    };
    const rendered = execFileSync("go", ["run", join(import.meta.dirname, "render-chart.go"), ...templates], {
      input: JSON.stringify(input),
      encoding: "utf8",
      env: { ...process.env, GOCACHE: join(directory, "go"), GOFLAGS: "-mod=mod" },
    });
    const documents = documentsOf(rendered);
    expectServable(documents);
    const base = documentsOf(textOf("kubernetes", "deployment.yaml"));
    const podOf = (each: Document) => each.spec.template.spec;
    const [own] = podOf(only(documents, "Deployment")).containers as [Container];
    const [theirs] = podOf(only(base, "Deployment")).containers as [Container];
    expect(own).toEqual({ ...theirs, image: `millwright:${version}` });
  });
});

test("compose gives the server a configuration that it takes", () => {
  const filled = textOf("compose", "compose.yaml")
    .replace(/\$\{FIRST_ADMIN_SHA256:[^}]*\}/, "0".repeat(64))
    .replaceAll(/\$\{DATABASE_PASSWORD:[^}]*\}/g, "secret");
  const { services } = parse(filled) as {
    services: { millwright: { environment: Record<string, string>; volumes: string[] } };
  };
  const { MILLWRIGHT_CONFIG, ...env } = services.millwright.environment;
  const config = load(textOf("compose", "millwright.yaml"), { ...env, XDG_STATE_HOME: "/var/lib" });
  expect(config).toMatchObject({
    dataDir: "/var/lib/millwright",
    auth: { tokens: [{ name: "first-admin", roles: ["admin"] }] },
  });
  expect(services.millwright.volumes).toEqual([`./millwright.yaml:${MILLWRIGHT_CONFIG}:ro`, `data:${config.dataDir}`]);
});

test.skipIf(systemd !== "")(needing("systemd finds no fault with the unit", systemd), () => {
  const verified = spawnSync("systemd-analyze", ["verify", join(DEPLOY, "systemd", "millwright.service")], {
    encoding: "utf8",
  });
  expect({ code: verified.status, said: verified.stderr.trim() }).toEqual({ code: 0, said: "" });
});

test("the unit keeps what the server writes where the server writes it", () => {
  const unit = textOf("systemd", "millwright.service");
  const settingOf = (key: string) => new RegExp(`^${key}=(.*)$`, "m").exec(unit)?.[1];
  expect(settingOf("Environment")).toBe(`MILLWRIGHT_DATA_DIR=/var/lib/${settingOf("StateDirectory")}`);
});
