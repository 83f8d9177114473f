import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../config.ts";
import { AppError } from "../../kernel/errors.ts";
import type { Caller } from "../../services/call/caller.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { createWorkflow } from "../../services/install/workflows.ts";

const FOLDER = "simulated";
/** Simulated machines load these for real, and run nothing of them. */
const FILES = {
  vmlinuz: "A kernel for simulated machines.\n",
  initrd: "The environment of simulated machines.\n",
  "disk.img": "An image for simulated machines.\n".repeat(2_000),
} as const;
const at = (name: keyof typeof FILES): string => `/files/${FOLDER}/${name}`;

/** What simulated machines boot from the network, unless files of the user's own are served. */
export function withSimulatedFiles(config: Config): Config {
  if (config.install.filesDir !== null) return config;
  const filesDir = join(config.dataDir, "files");
  mkdirSync(join(filesDir, FOLDER), { recursive: true });
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(filesDir, FOLDER, name), text);
  const erase =
    config.install.erase.kernel === null ? { kernel: at("vmlinuz"), initrd: at("initrd") } : config.install.erase;
  return { ...config, install: { ...config.install, filesDir, erase } };
}

/** The simulated site's machines find the server, and there is something to install. */
export async function offerNetworkBoot(
  deps: ServiceDeps,
  caller: Caller,
  { config, bootUrl, controlUrl }: { readonly config: Config; readonly bootUrl: string; readonly controlUrl: string },
): Promise<void> {
  if (config.install.filesDir === join(config.dataDir, "files")) await addWorkflow(deps, caller);
  const answer = await fetch(new URL("/boot-server", controlUrl), {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ url: bootUrl }),
  });
  if (!answer.ok) throw new Error(`the simulator does not take ${bootUrl} for its boot server: ${await answer.text()}`);
}

async function addWorkflow(deps: ServiceDeps, caller: Caller): Promise<void> {
  const step = {
    config: {},
    timeout_seconds: 600,
    on_failure: "fail",
    max_retries: 0,
    retry_delay_seconds: 10,
    next_state: null,
  } as const;
  try {
    await createWorkflow(deps, caller, {
      id: FOLDER,
      name: "Image for simulated machines",
      description: "",
      osFamily: "linux",
      architecture: "x86_64",
      bootMode: "any",
      boot: {
        method: "image",
        kernel_url: at("vmlinuz"),
        initrd_url: at("initrd"),
        cmdline: "",
        image_url: at("disk.img"),
        image_digest: `sha256:${createHash("sha256").update(FILES["disk.img"]).digest("hex")}`,
        target_device: "",
      },
      steps: [
        { ...step, sequence: 1, name: "find disks", type: "disk_scan" },
        { ...step, sequence: 2, name: "write image", type: "boot", on_failure: "retry", max_retries: 2 },
        { ...step, sequence: 3, name: "seed", type: "cloud_init", config: { user_data: "#cloud-config\n" } },
        { ...step, sequence: 4, name: "restart", type: "reboot" },
      ],
    });
  } catch (error) {
    if (!(error instanceof AppError) || error.kind !== "already_exists") throw error;
  }
}
