import { DECOMMISSION_STAGES } from "../../src/runs/workflows/fleet/decommission-stages.ts";
import { fleetDecommission } from "../../src/runs/workflows/fleet/fleet-decommission.ts";
import { fleetOnboarding } from "../../src/runs/workflows/fleet/fleet-onboarding.ts";
import { ONBOARDING_STAGES } from "../../src/runs/workflows/fleet/onboarding-stages.ts";
import type { Workflow } from "../../src/runs/workflows/workflow.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import { readLockFile, readManifest } from "../dependencies/lock-file.ts";
import { sbom } from "../dependencies/sbom.ts";
import { root } from "../run-tool.ts";
import { apiPage } from "./api-page.ts";
import { causesPage } from "./causes-page.ts";
import { cliPage } from "./cli-page.ts";
import { cliVocabularyModule } from "./cli-vocabulary.ts";
import { configurationPage } from "./configuration-page.ts";
import { errorsPage } from "./errors-page.ts";
import { filtersPage } from "./filters-page.ts";
import { grafanaDashboard } from "./grafana-dashboard.ts";
import { lifecycleFileName, lifecycleIndex, lifecyclePage } from "./lifecycle-page.ts";
import { metricsPage } from "./metrics-page.ts";
import { restPage } from "./rest-page.ts";
import { rolesPage } from "./roles-page.ts";
import { stagesPage } from "./stages-page.ts";

/** Folders with generated pages; others may stand beside them. */
export const GENERATED_FOLDERS = ["docs/lifecycles", "docs/reference", "src/cli/generated", "deploy/grafana"] as const;

/** Every generated page by its path from the root; the same checkout always gives the same text. */
export async function generatePages(): Promise<ReadonlyMap<string, string>> {
  const lifecycles = [...allStores.values()].map(({ lifecycle }) => lifecycle);
  return new Map([
    ["docs/lifecycles/README.md", lifecycleIndex(lifecycles)],
    ...lifecycles.map(
      (lifecycle) => [`docs/lifecycles/${lifecycleFileName(lifecycle)}`, lifecyclePage(lifecycle)] as const,
    ),
    [
      "docs/lifecycles/fleet-onboarding.md",
      stagesPage({
        title: "Workflow: fleet onboarding",
        source: "`src/runs/workflows/fleet/onboarding-stages.ts`",
        workflow: fleetOnboarding as Workflow,
        rows: ONBOARDING_STAGES,
      }),
    ],
    [
      "docs/lifecycles/fleet-decommission.md",
      stagesPage({
        title: "Workflow: fleet decommission",
        source: "`src/runs/workflows/fleet/decommission-stages.ts`",
        workflow: fleetDecommission as Workflow,
        rows: DECOMMISSION_STAGES,
      }),
    ],
    ["deploy/grafana/millwright.json", grafanaDashboard()],
    ["docs/reference/api.md", await apiPage()],
    ["docs/reference/causes.md", causesPage()],
    ["docs/reference/cli.md", cliPage()],
    ["docs/reference/configuration.md", configurationPage()],
    ["docs/reference/errors.md", errorsPage()],
    ["docs/reference/filters.md", filtersPage()],
    ["docs/reference/metrics.md", metricsPage()],
    ["docs/reference/rest.md", restPage()],
    ["docs/reference/roles.md", rolesPage()],
    ["docs/reference/sbom.cdx.json", sbom(await readLockFile(root), await readManifest(root))],
    ["src/cli/generated/server-vocabulary.ts", cliVocabularyModule()],
  ]);
}
