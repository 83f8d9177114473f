import { seconds } from "../../../../kernel/time/duration.ts";
import { defineStepOn, type ProbeReport } from "../../../model/step.ts";
import { notUsable, reachedBy } from "./maas-status.ts";
import { findBound, type Onboarding, type OnOnboarding, parseOnboarding, patiently, shownAs } from "./on-onboarding.ts";

/** datasource: the system was installed, and cloud-init found nobody to tell it what it is. deployed: it came about since. */
type Verdict = "datasource" | "other" | "deployed";

/** As cloud-init has said it for years, in the log of the installer and in the events of MAAS. */
const NO_DATASOURCE =
  /no datasource found|datasource_not_found|DataSourceNotFound|did not find (?:any|a) data ?source/i;

/** Finds out why a deployment failed, by the events of the machine and the installer's log. */
export const classifyDeployFailure = defineStepOn<OnOnboarding>()({
  kind: "classify_deploy_failure",
  needs: [],
  defaults: { timeout: seconds(300), maxRetries: 0 },
  parse: parseOnboarding,
  before: async () => ({}),
  act: async () => undefined,
  probe: (context) => patiently(() => look(context)),
});

async function look(context: Onboarding): Promise<ProbeReport> {
  const { maas, target, machine } = await findBound(context);
  const { call, log } = context;
  const reached = reachedBy(machine);
  if (reached === "unusable") throw notUsable(machine);
  if (reached === "deployed")
    return { state: "done", message: shownAs(machine), verdict: "deployed" satisfies Verdict };
  const [events, installed] = await Promise.all([
    maas.listEvents(target, machine.systemId, call),
    maas.readInstallLog(target, machine.systemId, call),
  ]);
  const errors = events.filter(({ level }) => level === "ERROR").map(({ description }) => description);
  const told = [...errors, installed].filter((text) => text.trim() !== "");
  for (const text of told) log(`[MAAS] ${text.trim()}\n`);
  const verdict: Verdict = told.some((text) => NO_DATASOURCE.test(text)) ? "datasource" : "other";
  const said = (errors[0] ?? installed.trim().split("\n").at(-1) ?? "").slice(0, 300);
  const what = verdict === "datasource" ? "cloud-init found no datasource" : "the installation failed";
  return { state: "done", message: said === "" ? what : `${what}: ${said}`, verdict };
}
