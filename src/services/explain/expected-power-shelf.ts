import { AppError } from "../../kernel/errors.ts";
import { parseMac } from "../../kernel/ids.ts";
import { expectedPowerShelfLifecycle } from "../../lifecycles/expected-power-shelf/lifecycle.ts";
import {
  type ExpectedPowerShelfRecord,
  listExpectedPowerShelves,
} from "../../store/expected-power-shelf/expected-power-shelves.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { NO_TROUBLE, nameTrouble, type Trouble, troubleOf } from "./causes.ts";
import { type Explanation, inOrder, type NextCommand, say } from "./explanation.ts";
import { causeOfPass, findNextPass, iso, type NextPass } from "./next-pass.ts";

const KIND = expectedPowerShelfLifecycle.kind;

/** By its id, or by the MAC address of its BMC. */
export async function explainExpectedPowerShelf(deps: ServiceDeps, idOrMac: string): Promise<Explanation> {
  const row = await find(deps, idOrMac);
  const now = nowOf(deps);
  const isAtWork = row.state.name === "exploring";
  const pass = await findNextPass(deps.db, { kind: KIND, id: row.id }, { now, isAtWork });
  const message = row.lastError ?? row.outcome?.reason ?? "";
  const trouble = isAtWork ? troubleOf(message, causeOfPass(pass, row.outcome)) : NO_TROUBLE;
  return {
    headline: `expected power shelf ${row.bmc.mac} ${headlineOf(row, pass, trouble)}`,
    doing: isAtWork ? `searching for its BMC at ${row.bmc.address ?? "no address"}` : "",
    waitingFor: waitingFor(row, pass, trouble),
    since: row.outcome?.since === undefined ? row.stateSince : new Date(row.outcome.since),
    claims: [],
    lastFailure:
      trouble.message === ""
        ? null
        : {
            at: exploredAt(row),
            runId: "",
            step: "exploring",
            attempt: Math.max(1, pass.failures),
            message: trouble.message,
          },
    nextCommands: inOrder(commandsFor(row, pass, trouble)),
  };
}

async function find({ db }: ServiceDeps, idOrMac: string): Promise<ExpectedPowerShelfRecord> {
  const isMac = /^([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$/i.test(idOrMac);
  const [row] = await listExpectedPowerShelves(db, isMac ? { bmcMac: parseMac(idOrMac, "id") } : { ids: [idOrMac] });
  if (row) return row;
  throw new AppError("not_found", `expected power shelf ${idOrMac.slice(0, 80)} does not exist`, {
    field: "id",
    next: "millwright expected-power-shelf list",
  });
}

const exploredAt = ({ facts: { exploredAt: at } }: ExpectedPowerShelfRecord): Date | null =>
  at === null ? null : new Date(at);

function headlineOf({ state, deviceId }: ExpectedPowerShelfRecord, pass: NextPass, trouble: Trouble): string {
  if (state.name === "linked") return `is linked: it became power shelf ${deviceId ?? ""}`.trimEnd();
  if (state.name === "detached")
    return "is detached: its power shelf was deleted, and no search begins until the row is updated";
  if (pass.isStranded) return `is being searched for, and waits for ${pass.waits}`;
  return trouble.message === "" ? "is being searched for" : `is being searched for, but ${nameTrouble(trouble)}`;
}

function waitingFor({ state, nextExploreAt }: ExpectedPowerShelfRecord, pass: NextPass, trouble: Trouble): string[] {
  if (state.name !== "exploring") return state.name === "detached" ? ["a person who updates it"] : [];
  if (pass.waits !== "") return [pass.waits];
  const next = nextExploreAt === null ? [] : [`the next search at ${iso(nextExploreAt)}`];
  return trouble.message === "" ? next : [trouble.message, ...next];
}

function commandsFor(row: ExpectedPowerShelfRecord, pass: NextPass, { cause }: Trouble): NextCommand[] {
  const { bmc, state, deviceId, existing } = row;
  const show = say(`expected-power-shelf show ${bmc.mac}`, "shows what is expected, and how the search goes");
  const history = say(`history ${KIND} ${row.id}`, "shows what happened to it");
  const update = (option: string, why: string) => say(`expected-power-shelf update ${bmc.mac} ${option}`, why);
  const endpoint = bmc.address === null ? "<host[:port]>" : `${bmc.address}${bmc.port === null ? "" : `:${bmc.port}`}`;
  const again = update(
    `--bmc-endpoint ${endpoint}`,
    "searches for it again at once, here or at the address that you give",
  );
  if (state.name === "linked" && deviceId !== null)
    return [say(`explain power_shelf ${deviceId}`, "explains the power shelf that it became"), show];
  if (state.name !== "exploring") return [again, show, history];
  if (pass.isStranded) return [again, say("system", "shows which server answers, and whether it is healthy")];
  switch (cause?.code) {
    case "credentials_rejected":
    case "forbidden":
    case "sign_in_stopped":
    case "credentials_missing":
    case "credentials_not_for_this_address":
      return [
        update(`--bmc-username ${row.bmcUsername || "<name>"}`, "sets a user and a password, which are tried at once"),
        show,
      ];
    case "wrong_identity":
      return [update("--serial <serial>", "corrects the serial that is expected"), again, show];
    case "endpoint_missing":
      return [update("--bmc-endpoint <host[:port]>", "sets the address of its BMC"), show];
    default:
      return [
        ...(existing === null
          ? []
          : [say(`explain power_shelf ${existing.id}`, "explains the power shelf that has its BMC")]),
        again,
        show,
        history,
      ];
  }
}
