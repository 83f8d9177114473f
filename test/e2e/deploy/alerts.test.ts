import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { METRICS } from "../../../src/telemetry/metric-definitions.ts";
import { needing } from "../../support/counterparts/needing.ts";
import { ROOT } from "../../support/processes/process-bench.ts";

const FOLDER = join(ROOT, "deploy", "prometheus");
const promtool = spawnSync("promtool", ["--version"]).status === 0 ? "" : "prometheus";

test.skipIf(promtool !== "")(
  needing("the alerts go off for what was recorded of a real fault, and end with it", promtool),
  () => {
    const tested = spawnSync("promtool", ["test", "rules", "millwright-rules.test.yaml"], {
      cwd: FOLDER,
      encoding: "utf8",
    });
    expect(tested.status, tested.stdout + tested.stderr).toBe(0);
  },
);

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[];
}
const { groups } = parse(readFileSync(join(FOLDER, "millwright-rules.yaml"), "utf8")) as Rules;
const alerts = groups.flatMap(({ rules }) => rules);

test.each(alerts.map(({ alert, expr }) => [alert, expr] as const))(
  "%s reads metrics that there are, by labels that they have",
  (_alert, expr) => {
    const used = [...expr.matchAll(/\b(millwright_\w+)(?:\{([^}]*)\})?/g)];
    for (const [, name = "", selector = ""] of used) {
      expect(Object.keys(METRICS)).toContain(name);
      const { labels } = METRICS[name as keyof typeof METRICS];
      const selected = [...selector.matchAll(/(\w+)=/g)].map(([, label]) => label);
      expect(labels).toEqual(expect.arrayContaining(selected));
    }
  },
);
