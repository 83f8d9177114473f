import { setTimeout as pause } from "node:timers/promises";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { isSameHostKey } from "../../capabilities/host-key.ts";
import type { RemoteExec } from "../../capabilities/remote-exec.ts";
import type { SshTarget } from "../../capabilities/ssh-target.ts";
import { stopped } from "../transport/bmc-lane.ts";
import type { FakeMachine } from "./fake-machine.ts";
import { FAKE_PRIVATE_KEY } from "./fake-places.ts";
import { answerAboutDetached } from "./fake-scripts.ts";
import { runInFakeShell } from "./fake-shell.ts";
import type { FakeWorld } from "./fake-world.ts";

/** What steps read on every system. */
const FILES: Readonly<Record<string, (machine: FakeMachine) => string | undefined>> = {
  "/proc/sys/kernel/random/boot_id": ({ bootId = "" }) => `${bootId}\n`,
  "/sys/class/dmi/id/product_uuid": ({ systemUuid }) => `${systemUuid}\n`,
  "/etc/millwright-image": ({ stamp }) => stamp ?? undefined,
};

/** The operating system of a fake machine. */
export function createFakeExec(world: FakeWorld): RemoteExec {
  const reach = (target: SshTarget, call: CallContext): FakeMachine => {
    const machine = world.ask(target, call);
    if (machine.bootId === undefined) {
      throw new DeviceFailure("unreachable", "ssh", `no system answers on fake machine ${machine.id}`);
    }
    return machine;
  };
  const signIn = (target: SshTarget, call: CallContext): FakeMachine => {
    const machine = reach(target, call);
    if (target.hostKey !== null && !isSameHostKey(target.hostKey, machine.hostKey)) {
      const message = `fake machine ${machine.id} shows another host key than the pinned one`;
      throw new DeviceFailure("host_key_changed", "ssh", message);
    }
    if (!("privateKey" in target.credentials) || target.credentials.privateKey !== FAKE_PRIVATE_KEY) {
      throw new DeviceFailure(
        "credentials_rejected",
        "ssh",
        `fake machine ${machine.id} does not accept the given key`,
      );
    }
    return machine;
  };
  return {
    async run(target, { script, env, onOutput }, call) {
      const machine = signIn(target, call);
      const detached = answerAboutDetached(world, machine, { script, env });
      if (detached !== undefined) {
        if (detached.output !== "") onOutput?.(Buffer.from(detached.output), "stdout");
        return detached;
      }
      if (/^systemctl reboot\b/m.test(script)) {
        world.failIfTold("reboot");
        machine.restart();
        return { code: 0, signal: null, output: "" };
      }
      const { stdout, stderr, code, sleeps } = runInFakeShell(script, env);
      if (stdout !== "") onOutput?.(Buffer.from(stdout), "stdout");
      if (stderr !== "") onOutput?.(Buffer.from(stderr), "stderr");
      if (sleeps > 0) {
        await pause(sleeps * 1_000, undefined, { signal: call.signal }).catch(() => {
          throw stopped(`fake machine ${machine.id}`, call.signal);
        });
      }
      return { code, signal: null, output: stdout };
    },
    readHostKey: async (target, call) => reach(target, call).hostKey,
    async readFile(target, path, call) {
      const machine = signIn(target, call);
      return { text: Object.hasOwn(FILES, path) ? FILES[path]?.(machine) : undefined, hostKey: machine.hostKey };
    },
  };
}
