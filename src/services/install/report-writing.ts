import { toldBy } from "../../lifecycles/install/report.ts";
import type { InstallRecord } from "../../store/install/installs.ts";
import { recordChanges } from "../../store/lifecycle/changes.ts";
import { commitOrRefuse } from "../../store/lifecycle/commit/commit-or-refuse.ts";
import type { Unit } from "../../store/lifecycle/commit/unit.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { INSTALL_KIND, installKey } from "./key.ts";
import type { DecidedReport } from "./report-verdict.ts";

/** All that was decided, with what it brings about: many reports in a few statements. */
export async function writeReports(
  tx: Transaction,
  deps: ServiceDeps,
  decided: readonly DecidedReport[],
): Promise<void> {
  const units = decided.map(({ input, install, move, facts: seen, now }): Unit => {
    const facts = { ...toldBy(input.report, now), ...seen };
    return {
      kind: INSTALL_KIND,
      thing: install,
      ...(move && { move }),
      facts: Object.fromEntries(Object.entries(facts).filter(([name, value]) => differs(install, name, value))),
      actor: `node ${install.mac}`,
      address: input.address,
    };
  });
  await commitOrRefuse(tx, deps.stores, units);
  await recordChanges(
    tx,
    storeOf(deps.stores, INSTALL_KIND),
    decided.flatMap(({ input, install, ignored, boot }) =>
      ignored === undefined
        ? []
        : [
            {
              id: install.id,
              type: "report_ignored",
              actor: `node ${install.mac}`,
              address: input.address,
              reason: ignored,
              data: { ...input.report },
              set: { boot: boot ?? install.boot },
              // Of a boot in doubt the clock of the attempt goes by what was said.
              touchesBasis: boot !== undefined,
            },
          ],
    ),
  );
  // The engine watches the clock of an attempt, which progress does not move; which step is under way it shows as its reason.
  const moved = decided.filter(
    ({ move, boot, input }) =>
      boot !== undefined || (move !== undefined && (move.trigger !== "progress" || input.report.step !== undefined)),
  );
  await work.wake(
    tx,
    moved.map(({ install }) => installKey(install.id)),
  );
}

function differs(install: InstallRecord, name: string, value: unknown): boolean {
  const before: unknown = install.facts[name as keyof InstallRecord["facts"]];
  return before instanceof Date ? before.toISOString() !== value : before !== value;
}
