import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { DeviceCause, DeviceFailure } from "../../capabilities/device-failure.ts";
import { bmcFailure } from "../transport/bmc-failure.ts";
import { nameOf } from "../transport/bmc-gateway.ts";
import { hideSecrets } from "../transport/hide-secrets.ts";
import { oneLine } from "../transport/one-line.ts";
import type { ToolResult } from "./ipmitool.ts";

/** Whom was asked what, for messages. */
export interface Asked {
  readonly target: BmcTarget;
  readonly what: string;
}

const LONGEST_EXCERPT = 300;

/** The bytes that `ipmitool raw` prints: pairs of hexadecimal digits, sixteen a line. */
export function bytesOf(asked: Asked, { stdout }: Pick<ToolResult, "stdout">, atLeast: number): readonly number[] {
  const words = stdout.split(/\s+/).filter((word) => word !== "");
  const bytes = words.map((word) => (/^[0-9a-f]{2}$/i.test(word) ? Number.parseInt(word, 16) : Number.NaN));
  if (bytes.length >= atLeast && !bytes.some(Number.isNaN)) return bytes;
  const shown = excerptOf(asked, stdout);
  throw bmcFailure(
    "protocol",
    asked.target,
    `${nameOf(asked.target)} answered ${asked.what} with something that makes no sense: ${shown === "" ? "nothing" : shown}`,
  );
}

/** Completion codes of the IPMI specification (table 5-2) that say more than "refused". */
const COMPLETION_CODES: ReadonlyMap<number, DeviceCause> = new Map([
  [0xc0, "busy"], // node busy
  [0xc3, "busy"], // timeout while processing
  [0xc4, "busy"], // out of space
  [0xce, "busy"], // response could not be provided
  [0xd0, "busy"], // SDR repository in update mode
  [0xd1, "busy"], // device in firmware update mode
  [0xd2, "busy"], // BMC initialising
  [0xd3, "busy"], // destination unavailable
  [0xd4, "forbidden"], // insufficient privilege level
  [0xd5, "busy"], // not supported in the present state
]);

/** What the program complains of, the most telling first. Its words, as of 1.8.18 and 1.8.19 with `-v`. */
const COMPLAINTS: readonly (readonly [RegExp, DeviceCause, string])[] = [
  [
    /RAKP 2 HMAC is invalid|unauthorized name|unauthorized GUID|invalid integrity check|invalid role|invalid name length|unauthorized role/i,
    "credentials_rejected",
    "refused the sign-in: wrong credentials, or a user without the privilege OPERATOR on its LAN channel",
  ],
  [
    /insufficient resources to create a session/i,
    "busy",
    "has no session left: others are signed in, or an old session has not run out",
  ],
  [
    /invalid (authentication|integrity|confidentiality) algorithm|no matching (authentication|integrity|cipher)|cipher suite/i,
    "refused_by_device",
    "accepts none of the cipher suites that were tried: see the setting ipmi.cipher",
  ],
  [
    /Get Auth Capabilities error|Could not open socket|Unable to establish|Address lookup|timed? ?out|No response/i,
    "unreachable",
    "cannot be reached over IPMI",
  ],
];

const RAW_FAILURE = /\brsp=0x([0-9a-f]{1,2})\)/i;

/** What went wrong when the program ended with anything but 0. */
export function failureOf(asked: Asked, result: ToolResult): DeviceFailure {
  const bmc = nameOf(asked.target);
  const said = excerptOf(asked, lastWords(result.stderr) || lastWords(result.stdout));
  const code = RAW_FAILURE.exec(result.stderr)?.[1];
  if (code !== undefined) {
    const number = Number.parseInt(code, 16);
    const cause = COMPLETION_CODES.get(number) ?? "refused_by_device";
    const who = `user ${asked.target.username} lacks the right for ${asked.what}`;
    const message =
      cause === "forbidden"
        ? `${bmc}: ${who} (completion code 0x${code}): ${said}; give credentials of an account that has it`
        : `${bmc} answered ${asked.what} with: ${said}`;
    return bmcFailure(cause, asked.target, message, { status: number });
  }
  const known = COMPLAINTS.find(([words]) => words.test(result.stderr));
  if (known === undefined)
    return bmcFailure(
      "protocol",
      asked.target,
      `${bmc}: ${asked.what} failed with exit code ${result.code ?? "none"}: ${said || "no word why"}`,
    );
  const [, cause, words] = known;
  return bmcFailure(cause, asked.target, `${bmc} ${words} (${said})`);
}

/** Whether another cipher suite may do better: the BMC is there, and no fault was found with who we are. */
export function isCipherTrouble({ code, stderr }: ToolResult): boolean {
  if (code === 0 || !/Unable to establish/i.test(stderr)) return false;
  return !/Get Auth Capabilities error|Could not open socket|Address lookup|RAKP 2|insufficient resources/i.test(
    stderr,
  );
}

/** The line that says it; those before are chatter, and "unable to establish" is said of everything. */
function lastWords(text: string): string {
  const lines = text.split("\n").map((line) => line.trim());
  const telling = lines.filter((line) => line !== "" && !CHATTER.test(line));
  return telling.at(-1) ?? lines.filter((line) => line !== "").at(-1) ?? "";
}
const CHATTER =
  /^Loading IANA|Get HPM\.x Capabilities|Running Get VSO|Invalid completion code received|Discovered IPMB|^RAW (REQ|RSP)|Unable to establish/i;

const excerptOf = ({ target }: Asked, text: string): string => oneLine(hideSecrets(text, { target }), LONGEST_EXCERPT);
