import type { BootDecision } from "../../../lifecycles/install/boot-decision.ts";
import type { WorkflowBoot } from "../../../lifecycles/install/workflow.ts";
import { placeOfNode, seedDirectory } from "../../../runs/seeds/seed-place.ts";

/** What the script of one boot is made from. */
export interface BootScript {
  readonly decision: BootDecision;
  /** As the node reaches us: `http://10.0.0.1:8080`. */
  readonly server: string;
  readonly mac: string;
  /** Absent for a machine that is not on record. */
  readonly nodeId?: string;
  readonly ip?: string | undefined;
  /** What the reports of this boot must show. */
  readonly token?: string | undefined;
  readonly boot?: WorkflowBoot | undefined;
  /** How many steps the environment is to ask for; none: none. */
  readonly steps?: number;
  /** What the installed system is to hold in `/etc/millwright-image`, where a run wants to know it again. */
  readonly stamp?: string | undefined;
}

const POLL_SECONDS = 10;
const READING_SECONDS = 30;

/** The iPXE script for a boot. Whatever goes wrong in it ends in the machine's own boot order, never in a dead prompt. */
export function writeBootScript(script: BootScript): string {
  return `${["#!ipxe", ...linesOf(script)].join("\n")}\n`;
}

function linesOf(script: BootScript): string[] {
  const { decision } = script;
  const who = script.nodeId ?? script.mac;
  switch (decision.type) {
    case "local":
      return [say(`Millwright: ${who}: ${decision.why}, booting from disk`), "exit"];
    case "wait":
      return [
        say(`Millwright: ${who} ${decision.why}`),
        ":again",
        `sleep ${POLL_SECONDS}`,
        `chain --replace --autofree ${bootUrl(script)} || goto again`,
      ];
    case "problem":
      return [say(`Millwright: ${who}: ${decision.message}`), `sleep ${READING_SECONDS}`, "exit"];
    case "install":
      return [say(`Millwright: installing ${who}, attempt ${decision.attempt}`), ...bootLines(script), ...FAILED];
    case "erase":
      return [say(`Millwright: erasing the disks of ${who}`), ...bootLines(script), ...FAILED];
  }
}

const FAILED = [
  ":failed",
  say("Millwright: what it boots could not be loaded, booting from disk"),
  `sleep ${READING_SECONDS}`,
  "exit",
];

function bootLines(script: BootScript): string[] {
  const { boot } = script;
  if (!boot) return ["goto failed"];
  const url = (location: string) => absolute(fill(location, script), script.server);
  switch (boot.method) {
    case "sanboot":
      return [`sanboot --no-describe ${url(boot.iso_url)} || goto failed`];
    case "chain":
      return [`chain --replace --autofree ${url(boot.chain_url)} || goto failed`];
    case "kernel":
    case "image":
    case "clone": {
      const { initrd_url: initrd } = boot;
      const words = [
        // Named, since under UEFI the kernel finds its initrd by name alone.
        ...(initrd === undefined ? [] : ["initrd=initrd"]),
        ...(boot.cmdline === "" ? [] : [fill(boot.cmdline, script)]),
        ...kernelWords(script),
        ...imageWords(boot, url),
      ];
      return [
        `kernel ${url(boot.kernel_url)} ${words.join(" ")} || goto failed`,
        ...(initrd === undefined ? [] : [`initrd --name initrd ${url(initrd)} || goto failed`]),
        "boot || goto failed",
      ];
    }
  }
}

/** What the environment writes to which disk. */
function imageWords(boot: WorkflowBoot, url: (location: string) => string): string[] {
  if (boot.method !== "image" && boot.method !== "clone") return [];
  const [from, digest] =
    boot.method === "image" ? [boot.image_url, boot.image_digest] : [boot.source_url, boot.source_digest];
  return [
    `millwright.image=${url(from)}`,
    ...(digest === undefined ? [] : [`millwright.digest=${digest}`]),
    ...(boot.target_device === "" ? [] : [`millwright.target=${boot.target_device}`]),
  ];
}

/** What an installer needs to report. */
const kernelWords = ({ server, nodeId, mac, token, decision, stamp, steps = 0 }: BootScript): string[] => [
  `millwright.server=${server}`,
  `millwright.node=${nodeId ?? ""}`,
  `millwright.mac=${mac}`,
  ...(token === undefined ? [] : [`millwright.token=${token}`]),
  ...(stamp === undefined ? [] : [`millwright.stamp=${Buffer.from(stamp).toString("base64")}`]),
  ...(steps > 0 ? [`millwright.steps=${steps}`] : []),
  ...(decision.type === "erase" ? ["millwright.task=erase"] : []),
];

/** The variables of a workflow. Others are iPXE's own and stay. */
export function fill(
  text: string,
  { server, nodeId, mac, ip, token }: Pick<BootScript, "server" | "nodeId" | "mac" | "ip" | "token">,
): string {
  const seed = nodeId === undefined || token === undefined ? "" : seedDirectory(server, placeOfNode(nodeId), token);
  const values: Readonly<Record<string, string>> = {
    server,
    node_id: nodeId ?? "",
    mac,
    ip: ip ?? "",
    token: token ?? "",
    seed,
  };
  return text.replace(/\$\{(server|node_id|mac|ip|token|seed)\}/g, (_, name: string) => values[name] ?? "");
}

export const absolute = (location: string, server: string): string =>
  location.startsWith("/") ? `${server}${location}` : location;

/**
 * For a DHCP server to name: what a node asks for its script with, and that is longer than the boot file name of many a DHCP
 * answer may be. `netX` is the interface that it boots with.
 */
export function writeFirstScript(server: string): string {
  const query = Object.entries({
    mac: "netX/mac",
    vendor: "manufacturer:uristring",
    model: "product:uristring",
    serial: "serial:uristring",
    uuid: "uuid",
    arch: "buildarch",
    platform: "platform",
  }).map(([name, setting]) => `${name}=\${${setting}}`);
  const lines = [
    "#!ipxe",
    `chain --replace --autofree ${server}/api/v1/boot?${query.join("&")} || goto failed`,
    ...FAILED,
  ];
  return `${lines.join("\n")}\n`;
}

/** With what tells the machine from another that has its address. */
const bootUrl = ({ server, mac }: BootScript): string =>
  `${server}/api/v1/boot?mac=${mac}&serial=\${serial:uristring}&uuid=\${uuid}`;

/** One line of plain text: what a node told of itself must not become a command. */
function say(text: string): string {
  return `echo ${text
    .replace(/[^\x20-\x7e]/g, "?")
    .replace(/[$&|;`]/g, " ")
    .slice(0, 200)}`;
}
