import type { JsonObject } from "../../kernel/lifecycle.ts";
import { toldBy } from "../../lifecycles/install/report.ts";
import type { InstallRecord } from "../../store/install/installs.ts";
import { recordChanges } from "../../store/lifecycle/changes.ts";
import { commitOrRefuse } from "../../store/lifecycle/commit/commit-or-refuse.ts";
import type { Unit } from "../../store/lifecycle/commit/unit.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { INSTALL_KIND, installKey } from "./key.ts";
import type { DecidedReport, ReportInput } from "./report-verdict.ts";

/** All that was decided, with what it brings about: many reports in a few statements. */
export async function writeReports(
  tx: Transaction,
  deps: ServiceDeps,
  decided: readonly DecidedReport[],
): Promise<void> {
  const units = decided.map(({ input, install, isBelieved, move, facts: seen, now }): Unit => {
    const facts = { ...news(toldBy(input.report, now), install, isBelieved), ...seen };
    return {
      kind: INSTALL_KIND,
      thing: install,
      ...(move && { move }),
      facts: Object.fromEntries(Object.entries(facts).filter(([name, value]) => differs(install, name, value))),
      actor: actorOf(input, install),
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
              actor: actorOf(input, install),
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

const actorOf = ({ voucher }: ReportInput, { mac }: InstallRecord): string =>
  voucher === undefined ? `node ${mac}` : doneBy(voucher).actor;

/** Who is not believed fills in what nobody has said yet, and replaces nothing that is on record. */
const news = (told: JsonObject, { facts }: InstallRecord, isBelieved: boolean): JsonObject =>
  Object.fromEntries(
    Object.entries(told).filter(
      ([name]) => isBelieved || name === "lastSeenAt" || (facts[name as keyof InstallRecord["facts"]] ?? "") === "",
    ),
  );

function differs(install: InstallRecord, name: string, value: unknown): boolean {
  const before: unknown = install.facts[name as keyof InstallRecord["facts"]];
  return before instanceof Date ? before.toISOString() !== value : before !== value;
}
