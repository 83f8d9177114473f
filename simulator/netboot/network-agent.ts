import type { Machine } from "../devices/machine.ts";
import {
  bootedAgain,
  diskBegun,
  erasedAndOff,
  type NetworkChange,
  networkCut,
  networkDied,
  networkInstalled,
  networkInstallFailed,
  progressMade,
} from "../devices/network-life.ts";
import type { ImageSpec } from "../site/images.ts";
import { type MachineClient, Refusal } from "./machine-client.ts";
import { type NetworkStep, readStepLines } from "./step-lines.ts";

export interface AgentSurroundings {
  readonly machine: Machine;
  /** Which boot of the machine it is: what belongs to another one changes nothing. */
  readonly boot: number;
  readonly words: Readonly<Record<string, string>>;
  readonly client: MachineClient;
  readonly images: readonly ImageSpec[];
  readonly pxeImage: ImageSpec;
  /** Simulated time. */
  sleep(milliseconds: number): Promise<void>;
  /** Whether what is asked of it goes wrong in this boot. */
  readonly trouble: Trouble;
}

export interface Trouble {
  readonly fails: boolean;
  readonly losesLease: boolean;
  /** Percent. */
  readonly diesAt: number | undefined;
}

/** Simulated milliseconds. */
const INSTALL_MS = 600_000;
const ERASE_MS = 300_000;
const PAUSE_MS = 10_000;
const STEPS_OF_PROGRESS = 10;
const LOSES_LEASE_AT = 30;
const DISKS = ["/dev/nvme0n1", "/dev/nvme1n1"] as const;

/** The boot has ended, by a reset or by trouble: whatever it was doing is over. */
class BootEnded extends Error {}

/** What the kernel does that a machine has booted from the network: installs or erases, and reports, as the words on its command line say. */
export async function runNetworkAgent(around: AgentSurroundings): Promise<void> {
  try {
    if (around.words.task === "erase") await erase(around);
    else await install(around);
  } catch (error) {
    if (error instanceof BootEnded) return;
    // The server refuses what it says, or cannot be found: like the real one it boots again.
    await around.sleep(PAUSE_MS);
    change(around, bootedAgain);
  }
}

function change({ machine, boot }: AgentSurroundings, to: NetworkChange): void {
  if (!machine.changeNetworkBoot(boot, to)) throw new BootEnded();
}

interface Answer {
  readonly data: { readonly state: string };
}

/** Until it is taken; what the server refuses is thrown. */
async function report(around: AgentSurroundings, name: string, members: object): Promise<Answer> {
  const { machine, boot, words, client } = around;
  const body = {
    mac_address: words.mac,
    report_token: words.token,
    report_id: `${machine.spec.id}-${boot}-${name}`,
    ...members,
  };
  for (;;) {
    try {
      return JSON.parse(await client.post(`${words.server}/api/v1/report`, body)) as Answer;
    } catch (error) {
      if (error instanceof Refusal && error.status < 500) throw error;
      await around.sleep(PAUSE_MS);
      change(around, (state) => state);
    }
  }
}

async function install(around: AgentSurroundings): Promise<void> {
  const { words, client, machine } = around;
  const { vendor, model, serial, systemUuid, sshAddress } = machine.spec;
  const asked = { mac_address: words.mac, report_token: words.token };
  const { resumes, steps } =
    words.steps === undefined
      ? { resumes: false, steps: [] }
      : readStepLines(await client.post(`${words.server}/api/v1/boot/steps`, asked));
  // Not again when the simulator was stopped in the middle of it.
  if (!resumes && progressOf(around) === 0) {
    const who = { ip_address: sshAddress, vendor, model, serial_number: serial, system_uuid: systemUuid };
    const { data } = await report(around, "started", { installation_status: "started", ...who });
    if (data.state !== "installing") throw new Error("nobody wants it installed now");
    change(around, diskBegun);
  }
  const parts = steps.length === 0 ? [null] : steps;
  for (const [index, step] of parts.entries()) {
    if (step?.isDone === true) continue;
    const rest = await carryOut(around, step, { from: index / parts.length, to: (index + 1) / parts.length });
    if (rest === "ended") return;
  }
  await report(around, "complete", { installation_status: "complete", installation_progress: 100 });
  const installed = networkInstalled(whatWasInstalled(around));
  change(around, (state, at, life) => bootedAgain(installed(state, at, life), at, life));
}

/** Percent that it had reached. */
function progressOf({ machine }: AgentSurroundings): number {
  const { life } = machine.state;
  return life.is === "network_boot" ? (life.kernel?.progress ?? 0) : 0;
}

interface Share {
  readonly from: number;
  readonly to: number;
}

/** One step, or, without steps, all of it. */
async function carryOut(around: AgentSurroundings, step: NetworkStep | null, share: Share): Promise<"done" | "ended"> {
  const tell = (state: string, more: object = {}) =>
    step === null
      ? undefined
      : report(around, `step-${step.sequence}-${state}`, {
          installation_status: "progress",
          step: { sequence: step.sequence, state, attempt: 1, ...more },
        });
  await tell("running");
  if (step?.type === "reboot" && !step.isLast) {
    await tell("rebooting");
    change(around, bootedAgain);
    return "ended";
  }
  await passTime(around, share);
  const why = await whyItFails(around, step);
  if (why !== undefined) {
    await tell("failed", { message: why });
    await report(around, "failed", { installation_status: "failed", installation_error: why });
    change(around, networkInstallFailed);
    await around.sleep(PAUSE_MS);
    change(around, bootedAgain);
    return "ended";
  }
  await tell("completed");
  return "done";
}

/** Installing takes its time, and tells of it on the way. */
async function passTime(around: AgentSurroundings, { from, to }: Share): Promise<void> {
  const { trouble } = around;
  const first = Math.floor(from * STEPS_OF_PROGRESS) + 1;
  for (let part = first; part <= Math.floor(to * STEPS_OF_PROGRESS); part += 1) {
    const percent = Math.min(99, (part * 100) / STEPS_OF_PROGRESS);
    if (percent <= progressOf(around)) continue;
    await around.sleep(INSTALL_MS / STEPS_OF_PROGRESS);
    change(around, progressMade(percent));
    if (trouble.diesAt !== undefined && percent >= trouble.diesAt) {
      change(around, networkDied);
      throw new BootEnded();
    }
    if (trouble.losesLease && percent >= LOSES_LEASE_AT) {
      change(around, networkCut);
      throw new BootEnded();
    }
    await report(around, `progress-${percent}`, { installation_status: "progress", installation_progress: percent });
  }
}

/** An image is really fetched, and is what it should be. */
async function whyItFails(
  { words, client, trouble }: AgentSurroundings,
  step: NetworkStep | null,
): Promise<string | undefined> {
  if (trouble.fails && (step === null || step.isLast)) return "the simulated installation fails";
  if (words.image === undefined || (step !== null && step.type !== "boot")) return undefined;
  try {
    const found = await client.digest(words.image);
    if (words.digest === undefined || found === words.digest) return undefined;
    return `the image has the digest ${found}, not ${words.digest}`;
  } catch (error) {
    return `the image could not be had: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** As the marker on the disk will say: by the stamp that the run gave, by the digest, or what the site installs. */
function whatWasInstalled({ words, images, pxeImage }: AgentSurroundings) {
  const stamp = new Map(
    Buffer.from(words.stamp ?? "", "base64")
      .toString()
      .split("\n")
      .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)] as const),
  );
  const digest = stamp.get("digest") ?? words.digest;
  const known = images.find((each) => each.digest === digest) ?? pxeImage;
  const ref = stamp.get("image") ?? words.image?.replace(/^.*\//, "") ?? known.ref;
  return {
    image: { ...known, ref, digest: digest ?? known.digest },
    cloudInit: null,
    token: stamp.get("token") ?? null,
  };
}

async function erase(around: AgentSurroundings): Promise<void> {
  for (const disk of DISKS) {
    await around.sleep(ERASE_MS / DISKS.length);
    const erased_disk = {
      disk,
      serial: `${around.machine.spec.serial}-${disk.slice(-3)}`,
      method: "nvme_format",
      verified: true,
    };
    await report(around, `erased-${disk}`, { event: "disk_erased", erased_disk });
  }
  await report(around, "erased", { event: "erased", erased_disks: DISKS });
  change(around, erasedAndOff);
}
