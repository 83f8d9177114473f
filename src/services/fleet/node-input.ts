import { isIP } from "node:net";
import { isPrintable } from "../../kernel/printable.ts";
import { FLEET_MODES, type FleetMode } from "../../lifecycles/fleet-node/fleet-node.ts";
import type { BmcCredentials } from "../../store/device/bmc-credentials.ts";
import { refusal } from "../catalog/entries.ts";
import { checkBmcAccount } from "../machine/credentials.ts";
import { checkRunRequestId } from "../run/creation.ts";
import { checkName } from "./sites.ts";

export interface OnboardNode {
  /** The same again for the same request. */
  readonly requestId: string;
  readonly site: string;
  readonly profile: string;
  readonly sku: string;
  readonly hostname: string;
  /** The address of its management controller; empty: of a manual node alone. */
  readonly ipmiIp: string;
  /** Empty: maas. */
  readonly mode: string;
  /** The account of its management controller; absent or empty: what is on record stays. */
  readonly bmcUsername?: string;
  readonly bmcPassword?: string;
}

export interface CheckedNode extends Pick<OnboardNode, "requestId" | "site" | "profile" | "sku" | "hostname"> {
  readonly ipmiIp: string | null;
  readonly mode: FleetMode;
  readonly account: BmcCredentials | null;
}

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const LONGEST_HOSTNAME = 253;
const LONGEST_SKU = 63;

/** What a node is, without the request that asks for it. */
export type NodeAsked = Omit<OnboardNode, "requestId">;
export type CheckedIdentity = Omit<CheckedNode, "requestId">;

/** The first field that is wrong is refused. */
export function checkNode(input: OnboardNode): CheckedNode {
  checkRunRequestId(input.requestId);
  return { requestId: input.requestId, ...checkIdentity(input) };
}

export function checkIdentity(input: NodeAsked): CheckedIdentity {
  const mode = checkMode(input.mode);
  const ipmiIp = checkAddress(input.ipmiIp, mode);
  return {
    site: checkName(input.site, "site"),
    profile: checkName(input.profile, "profile"),
    sku: checkSku(input.sku),
    hostname: checkHostname(input.hostname),
    ...{ ipmiIp, mode, account: checkAccount(input, ipmiIp) },
  };
}

/** An account goes to the address that it is given with, and nowhere else. */
function checkAccount({ bmcUsername = "", bmcPassword = "" }: NodeAsked, ipmiIp: string | null) {
  const account = checkBmcAccount({ bmcUsername, bmcPassword });
  if (account === null || ipmiIp !== null) return account;
  throw refusal("bmc_username", "an account of a management controller is given together with ipmi_ip");
}

function checkMode(text: string): FleetMode {
  const mode = FLEET_MODES.find((each) => each === (text || "maas"));
  if (mode !== undefined) return mode;
  throw refusal("mode", `must be one of ${FLEET_MODES.join(", ")}`);
}

function checkSku(text: string): string {
  if (text !== "" && text.length <= LONGEST_SKU && isPrintable(text)) return text;
  throw refusal("sku", `must have 1 to ${LONGEST_SKU} printable characters`);
}

function checkHostname(text: string, field = "hostname"): string {
  if (text.length <= LONGEST_HOSTNAME && text.split(".").every((label) => LABEL.test(label))) return text;
  throw refusal(
    field,
    `${JSON.stringify(text.slice(0, 80))} must be labels of letters a-z, digits and dashes, with dots between them`,
  );
}

/** One spelling, since it tells nodes apart. */
function checkAddress(text: string, mode: FleetMode): string | null {
  if (text === "" && mode === "manual") return null;
  const version = isIP(text);
  if (version === 4) return text;
  if (version === 6) return new URL(`http://[${text}]`).hostname.slice(1, -1);
  throw refusal("ipmi_ip", "must be the IP address of the management controller");
}
