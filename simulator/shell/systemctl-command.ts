import type { CommandCall } from "./commands.ts";

const NOT_ACTIVE = 3;
const NO_SUCH_UNIT = 5;
const ALWAYS_ACTIVE = new Set(["ssh", "sshd", "containerd", "systemd-networkd"]);

/** The few units that matter here: the kubelet, which runs once the machine has joined, and some that always do. */
export function systemctl({ args, io, session: { machine } }: CommandCall): number {
  const quiet = args.some((arg) => arg === "-q" || arg === "--quiet");
  const [verb = "", ...units] = args.filter((arg) => !arg.startsWith("-"));
  if (verb === "reboot") return machine.goDown("restart") ? 0 : 1;
  if (verb === "poweroff") return machine.goDown("off") ? 0 : 1;
  if (verb === "daemon-reload") return 0;
  const say = (text: string) => {
    if (!quiet) io.out(`${text}\n`);
  };
  if (verb === "is-system-running") {
    say("running");
    return 0;
  }
  const unit = (units[0] ?? "").replace(/\.service$/, "");
  if (unit !== "kubelet" && !ALWAYS_ACTIVE.has(unit)) {
    if (verb === "is-active") say("inactive");
    else io.error(`Failed to ${verb} ${unit}.service: Unit ${unit}.service not found.\n`);
    return verb === "is-active" ? NOT_ACTIVE : NO_SUCH_UNIT;
  }
  const active = unit !== "kubelet" || machine.state.kubelet?.active === true;
  switch (verb) {
    case "is-active":
    case "status":
      say(active ? "active" : "inactive");
      return active ? 0 : NOT_ACTIVE;
    case "is-enabled":
      say("enabled");
      return 0;
    case "enable":
    case "disable":
      return 0;
    case "start":
    case "restart":
    case "stop":
      // Without a cluster to join, the kubelet only waits; starting it changes nothing.
      if (unit === "kubelet") machine.setKubelet(verb !== "stop", verb === "restart");
      return 0;
    default:
      io.error(`Unknown command verb '${verb}'.\n`);
      return 1;
  }
}
