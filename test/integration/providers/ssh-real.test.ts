import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import type { SshTarget } from "../../../src/capabilities/ssh-target.ts";
import type { JsonObject } from "../../../src/kernel/lifecycle.ts";
import { milliseconds, seconds } from "../../../src/kernel/time/duration.ts";
import { SEED_SCRIPT, seedVariablesOf } from "../../../src/lifecycles/fleet-node/agent-bootstrap.ts";
import { SshConnections } from "../../../src/providers/ssh/connections.ts";
import { createRemoteExec } from "../../../src/providers/ssh/remote-exec.ts";
import { createSshProvider, type SshProvider } from "../../../src/providers/ssh/ssh-provider.ts";
import { HeardScript } from "../../../src/runs/model/heard-script.ts";
import { endDetached, newMark, readState, startDetached } from "../../../src/runs/steps/scripts/detached-script.ts";
import { passOnOutput } from "../../../src/runs/steps/scripts/script-output.ts";
import { needing } from "../../support/counterparts/needing.ts";
import {
  accept,
  canMount,
  hasSshd,
  hasSudo,
  newKey,
  type RealSshServer,
  type SshdOptions,
  startSshd,
} from "../../support/counterparts/openssh-server.ts";
import { benchOf } from "../../support/runs/step-bench.ts";

let provider: SshProvider;
const servers: RealSshServer[] = [];

beforeEach(() => {
  provider = createSshProvider();
});
afterEach(async () => {
  provider.close();
  for (const server of servers.splice(0)) await server.stop();
});

describe.skipIf(!hasSshd)(needing("against the OpenSSH server", hasSshd ? "" : "openssh-server"), () => {
  const run = (target: SshTarget, script: string, env: Record<string, string> = {}) =>
    provider.can.exec.run(target, { script, env, timeout: seconds(10) }, aCall());

  test("a script comes by standard input, with its variables, and its exit code comes back", async () => {
    const { target } = await sshd();
    const text = `it's $HOME; "$(id)"\nand a second line`;
    const exit = await run(target, 'printf %s "$SAID"; echo oops >&2; exit 7\n', { SAID: text });
    expect(exit).toEqual({ code: 7, signal: null, output: text });
  });

  test("the agent of a fleet node is installed, whatever the values hold, and a host without its program says so", async () => {
    const root = await mkdtemp(join(tmpdir(), "millwright-seeded-"));
    onTestFinished(() => rm(root, { recursive: true }));
    for (const name of ["bin", "etc/systemd/system", "var"]) await mkdir(join(root, name), { recursive: true });
    const { target } = await sshd(`SetEnv PATH=${root}/bin:/usr/bin:/bin\n`);
    // The key of a system that is new is nobody's yet.
    const ssh = { ...target, hostKey: null };
    const env = seedVariablesOf({ server: "https://mill.example/$(id)'\"", nodeId: "fn-1", token: "mwe_a-b" });
    const script = SEED_SCRIPT.replaceAll(/(?<=\s)\/(etc|var)\//g, `${root}/$1/`);
    const seed = () => provider.can.exec.run(ssh, { script, env, timeout: seconds(10), asRoot: true }, aCall());
    expect(await seed()).toMatchObject({ code: 3, output: expect.stringContaining("no millwright command") });
    for (const name of ["millwright", "systemctl"])
      await writeFile(join(root, "bin", name), `#!/bin/sh\necho "$@" >> ${root}/called\n`, { mode: 0o755 });
    for (let time = 0; time < 2; time += 1) expect(await seed()).toEqual({ code: 0, signal: null, output: "" });
    const file = (name: string) => readFile(join(root, "etc", name), "utf8");
    expect(JSON.parse(await file("millwright-agent/node.json"))).toMatchObject({
      server: "https://mill.example/$(id)'\"",
      node: "fn-1",
    });
    expect(await file("millwright-agent/enrolment-token")).toBe("mwe_a-b\n");
    expect(await file("systemd/system/millwright-agent.service")).toBe(env.MILLWRIGHT_UNIT);
    expect(await readFile(join(root, "called"), "utf8")).toContain("restart millwright-agent.service");
  });

  describe.skipIf(!canMount || !hasSudo)(needing("as an account that is not root", hasSudo ? "" : "sudo"), () => {
    const whoAmI = async (mayBecomeRoot: boolean, asRoot?: true) => {
      const { target } = await sshd("", { account: { mayBecomeRoot } });
      const script = { script: 'id -un\nprintf %s "$SAID"\nexit 7\n', env: { SAID: "it's" }, timeout: seconds(10) };
      return provider.can.exec.run(target, { ...script, ...(asRoot && { asRoot }) }, aCall());
    };

    test("what needs the rights of root has them, by sudo", async () => {
      expect(await whoAmI(true, true)).toEqual({ code: 7, signal: null, output: "root\nit's" });
    });

    test("what does not need them, and what may not have them, runs as the account", async () => {
      expect(await whoAmI(true)).toEqual({ code: 7, signal: null, output: "ops\nit's" });
      expect(await whoAmI(false, true)).toEqual({ code: 7, signal: null, output: "ops\nit's" });
    });

    test("a script that needs them outlives its connection, is asked about, and is ended, as root", async () => {
      const { target: ssh } = await sshd("", { account: { mayBecomeRoot: true } });
      const script = { mark: newMark(), exec: provider.can.exec, ssh, call: aCall(), asRoot: true } as const;
      await startDetached(script, { text: "id -un\nsleep 300\n", env: {} });
      expect(await readState(script)).toEqual({ is: "running" });
      expect(await readState({ ...script, call: aCall() })).toEqual({ is: "running" });
      await endDetached(script);
      expect(await readState(script)).toMatchObject({ is: expect.stringMatching(/^(ended|cut_off)$/) });
    });
  });

  test("goes by way of a jump host that has a pinned key of its own", async () => {
    const jump = (await sshd()).target;
    const { target } = await sshd();
    const { address, port, username, hostKey } = jump;
    const through = { ...target, credentials: jump.credentials };
    // Both accept the same key, as jump hosts take the machine's credentials.
    await accept(through, servers);
    const jumpHosts = [{ address, port, username, hostKey: hostKey ?? "" }];
    expect(await run({ ...through, jumpHosts }, "echo $SSH_CONNECTION\n")).toMatchObject({ code: 0 });
    const wrong = [{ address, port, username, hostKey: target.hostKey ?? "" }];
    const refused = {
      disposition: "intervene",
      family: "unproven",
      // The machine's own key is none of it: pinning this one there would lock everybody out.
      message: expect.stringMatching(/^jump host SSH .* of this jump host \(machine register --file\)$/),
    };
    await expect(run({ ...through, jumpHosts: wrong }, "true\n")).rejects.toMatchObject(refused);
    await expect(provider.can.exec.readHostKey({ ...through, jumpHosts: wrong }, aCall())).rejects.toMatchObject(
      refused,
    );
  });

  test("a machine that shows another key than the pinned one is not signed in to", async () => {
    const { target } = await sshd();
    const other = (await sshd()).target;
    await expect(run({ ...target, hostKey: other.hostKey }, "true\n")).rejects.toMatchObject({
      disposition: "intervene",
    });
    expect(await provider.can.exec.readHostKey({ ...target, hostKey: other.hostKey }, aCall())).toBe(target.hostKey);
  });

  test("a key that is not accepted fails for good and is named as the cause", async () => {
    const { target } = await sshd();
    const { privateKey } = newKey();
    await expect(run({ ...target, credentials: { privateKey } }, "true\n")).rejects.toMatchObject({
      disposition: "fail",
      family: "keeps_out",
    });
  });

  test("reads small files, and tells which are not there", async () => {
    const { target } = await sshd();
    const { text, hostKey } = await provider.can.exec.readFile(target, "/proc/sys/kernel/random/boot_id", aCall());
    expect(text).toBe(await readFile("/proc/sys/kernel/random/boot_id", "utf8"));
    expect(hostKey).toBe(target.hostKey);
    expect((await provider.can.exec.readFile(target, "/no/such/file", aCall())).text).toBeUndefined();
  });

  test("a caller who stops waiting is not kept, and the connection serves the next one", async () => {
    const { target, directory } = await sshd();
    const stop = new AbortController();
    const begun = join(directory, "begun");
    // Ends by itself with the directory: no server promises to end what nobody waits for any more.
    const script = `echo yes > ${begun}\nwhile [ -e ${begun} ]; do sleep 0.05; done\n`;
    const running = provider.can.exec.run(
      target,
      { script, env: {}, timeout: seconds(60) },
      aCall({ signal: stop.signal }),
    );
    await vi.waitFor(() => expect(existsSync(begun)).toBe(true), { timeout: 20_000 });
    stop.abort();
    await expect(running).rejects.toThrow("stopped");
    expect(await run(target, "echo still here\n")).toMatchObject({ code: 0, output: "still here\n" });
  });

  test("a detached script outlives the connection and is found again by its mark", async () => {
    const { target, directory } = await sshd();
    const go = join(directory, "go");
    const script = { mark: newMark(), exec: provider.can.exec, ssh: target, call: aCall() };
    const text = `echo first; while [ ! -e ${go} ]; do sleep 0.05; done; echo "second $WORD"; echo bad >&2; exit 3`;
    expect(await readState(script)).toEqual({ is: "absent" });
    await startDetached(script, { text, env: { WORD: "it's" } });
    await vi.waitFor(async () => expect(await readState(script)).toEqual({ is: "running" }), { timeout: 20_000 });
    provider.close();
    provider = createSshProvider();
    const again = { ...script, exec: provider.can.exec };
    expect(await readState(again)).toEqual({ is: "running" });
    const heard = new HeardScript(null);
    const seen: string[] = [];
    const log = (chunk: string | Uint8Array, stream = "stdout") => void seen.push(`${stream}: ${Buffer.from(chunk)}`);
    await passOnOutput(again, { log, heard }, { is: "running" });
    await startDetached(again, { text, env: {} });
    await writeFile(go, "");
    await vi.waitFor(async () => expect(await readState(again)).toEqual({ is: "ended", code: 3 }), { timeout: 20_000 });
    await passOnOutput(again, { log, heard }, { is: "ended" });
    await rm(`/var/tmp/millwright-${script.mark}`, { recursive: true });
    expect(seen).toEqual(["stdout: first\n", "stdout: second it's\n", "stderr: bad\n"]);
  });

  test("a detached script is ended with all that it started, and seen to have been cut off", async () => {
    const { target, directory } = await sshd();
    const script = { mark: newMark(), exec: provider.can.exec, ssh: target, call: aCall() };
    const inner = join(directory, "inner");
    await startDetached(script, { text: `sh -c 'echo $$ > ${inner}; sleep 600; true'; echo over`, env: {} });
    await vi.waitFor(() => expect(existsSync(inner)).toBe(true), { timeout: 20_000 });
    await endDetached(script);
    const pid = (await readFile(inner, "utf8")).trim();
    await vi.waitFor(() => expect(existsSync(`/proc/${pid}`)).toBe(false), { timeout: 20_000 });
    expect(await readState(script)).toEqual({ is: "cut_off" });
    await rm(`/var/tmp/millwright-${script.mark}`, { recursive: true });
  });

  describe("a detached script that is ended", () => {
    const scriptOn = (target: SshTarget) => ({ mark: newMark(), exec: provider.can.exec, ssh: target, call: aCall() });

    test("is made to end when it does not as asked, with all that it started, before anybody says that it has", async () => {
      const { target, directory } = await sshd();
      const script = scriptOn(target);
      const pids = ["outer", "inner"].map((name) => join(directory, name));
      const inner = `trap "" TERM; echo $$ > ${pids[1]}; while :; do sleep 0.1; done`;
      const text = `trap '' TERM; echo $$ > ${pids[0]}; setsid sh -c '${inner}' & while :; do sleep 0.1; done`;
      await startDetached(script, { text, env: {} });
      await vi.waitFor(() => expect(pids.every((file) => existsSync(file))).toBe(true), { timeout: 20_000 });
      const running = await Promise.all(pids.map(async (file) => (await readFile(file, "utf8")).trim()));
      expect(running.map((pid) => isAlive(pid))).toEqual([true, true]);
      await endDetached(script);
      expect(running.map((pid) => isAlive(pid))).toEqual([false, false]);
      expect(await readState(script)).toEqual({ is: "cut_off" });
      await rm(`/var/tmp/millwright-${script.mark}`, { recursive: true });
    });

    test("before its start has reached the machine never begins, and is seen to have ended", async () => {
      const { target, directory } = await sshd();
      const script = scriptOn(target);
      const begun = join(directory, "begun");
      await endDetached(script);
      expect(await readState(script)).toEqual({ is: "ended", code: 143 });
      await expect(startDetached(script, { text: `echo yes > ${begun}`, env: {} })).rejects.toThrow("not be started");
      expect(await readState(script)).toEqual({ is: "ended", code: 143 });
      expect(existsSync(begun)).toBe(false);
      await rm(`/var/tmp/millwright-${script.mark}`, { recursive: true });
    });

    test("while its start is under way does not begin either", async () => {
      const { target, directory } = await sshd();
      const script = scriptOn(target);
      const begun = join(directory, "begun");
      // As far as a start has come when it has not launched it yet.
      const place = `/var/tmp/millwright-${script.mark}`;
      await mkdir(place);
      await endDetached(script);
      expect(existsSync(join(place, "stop"))).toBe(true);
      await rename(place, `${place}-kept`);
      const watched = `if [ -d ${place} ] && [ ! -e ${place}/stop ]; then cp ${place}-kept/stop ${place}/stop; fi`;
      const wrapped = { ...script, exec: stoppingJustBeforeLaunch(provider, watched) };
      await startDetached(wrapped, { text: `echo yes > ${begun}`, env: {} });
      await vi.waitFor(async () => expect(await readState(script)).toEqual({ is: "ended", code: 143 }), {
        timeout: 20_000,
      });
      expect(existsSync(begun)).toBe(false);
      for (const each of [place, `${place}-kept`]) await rm(each, { recursive: true });
    });
  });

  describe.skipIf(!canMount)("on a disk that is full (skipped where no file system can be mounted)", () => {
    const small = (size: string) => sshd("", { smallDisk: { size, path: "/var/tmp" } });
    const big = (bytes: number) => `: ${"x".repeat(bytes)}\necho began\n`;

    test("a script that does not fit is not begun, not even a part of it, and begins once there is room", async () => {
      const { target, directory } = await small("12k");
      const script = { mark: newMark(), exec: provider.can.exec, ssh: target, call: aCall() };
      const begun = join(directory, "begun");
      const text = `echo yes > ${begun}\n${big(10_000)}`;
      await run(target, "printf %04096d 0 > /var/tmp/other\n");
      await expect(startDetached(script, { text, env: {} })).rejects.toMatchObject({
        disposition: "retry",
        message: expect.stringContaining("no room for it"),
      });
      expect(await readState(script)).toEqual({ is: "absent" });
      expect(existsSync(begun)).toBe(false);
      await run(target, "rm /var/tmp/other; mount -o remount,size=1m /var/tmp\n");
      await startDetached(script, { text, env: {} });
      await vi.waitFor(async () => expect(await readState(script)).toEqual({ is: "ended", code: 0 }), {
        timeout: 20_000,
      });
    });

    test("a script that fills it is known to have ended, and how", async () => {
      const { target } = await small("64k");
      const script = { mark: newMark(), exec: provider.can.exec, ssh: target, call: aCall() };
      const text =
        "i=0; while [ $i -lt 4000 ]; do echo 0123456789012345678901234567890; i=$((i + 1)); done 2>/dev/null; exit 4";
      await startDetached(script, { text, env: {} });
      await vi.waitFor(async () => expect(await readState(script)).toEqual({ is: "ended", code: 4 }), {
        timeout: 20_000,
      });
    });
  });

  describe("a connection that the other side has hung up", () => {
    /** Between the end of what it sends and the close of the connection there is a moment in which nobody knows yet. */
    async function askedJustAfter(target: SshTarget, ask: (connections: SshConnections) => Promise<unknown>) {
      const connections = new SshConnections({});
      try {
        return await connections.use(target, aCall(), async ({ client }) => {
          const hungUp = new Promise<void>((resolve) => client.once("end", () => resolve()));
          const script = { script: "kill -9 $PPID\n", env: {}, timeout: seconds(10) };
          const lost = createRemoteExec(connections).run(target, script, aCall());
          const settled = lost.catch((error: unknown) => error);
          await hungUp;
          expect(() => client.exec("true", () => undefined)).toThrow("Not connected");
          return await Promise.all([settled, ask(connections).catch((error: unknown) => error)]);
        });
      } finally {
        connections.close();
      }
    }
    const isSilent = { disposition: "retry", family: "silent" };

    test("is a machine that does not answer, and never a fault of ours", async () => {
      const { target } = await sshd();
      const script = { script: "true\n", env: {}, timeout: seconds(10) };
      const ask = (connections: SshConnections) => createRemoteExec(connections).run(target, script, aCall());
      expect(await askedJustAfter(target, ask)).toMatchObject([isSilent, isSilent]);
    });

    test("is a jump host that does not answer, and never a fault of ours", async () => {
      const { credentials, jumpHosts, ...jump } = (await sshd()).target;
      const way = { ...jump, isJump: true as const, credentials, jumpHosts };
      const { target } = await sshd();
      const beyond = { ...target, credentials, jumpHosts: [{ ...jump, hostKey: jump.hostKey ?? "" }] };
      const ask = (connections: SshConnections) => connections.hostKey(beyond, aCall());
      expect(await askedJustAfter(way, ask)).toMatchObject([isSilent, isSilent]);
    });
  });

  describe("a network change", () => {
    /** A stand-in for netplan that notes what it was told to apply, on the path of this one server. */
    async function startWithNetplan() {
      const bin = await mkdtemp(join(tmpdir(), "millwright-netplan-"));
      const config = join(bin, "90-millwright.yaml");
      await writeFile(join(bin, "netplan"), `#!/bin/sh\ncat ${config} >> ${bin}/applied\n`, { mode: 0o755 });
      await writeFile(config, "old\n");
      const { target } = await sshd(`SetEnv NETPLAN_DIRECTORY=${bin} PATH=${bin}:/usr/bin:/bin\n`);
      return { bin, config, target, applied: () => readFile(join(bin, "applied"), "utf8") };
    }
    const netStep = (target: SshTarget, rollback: string) =>
      benchOf(
        "net",
        { params: { netplan: "new", rollback_seconds: rollback } },
        { exec: provider.can.exec },
        { targets: { ssh: async () => target } },
      );

    test("stays once the machine was reached after it", async () => {
      const { target, config, applied, bin } = await startWithNetplan();
      const step = netStep(target, "60");
      const evidence = await step.before();
      expect(await step.probe(evidence)).toMatchObject({ state: "not_done" });
      await step.act(evidence);
      await vi.waitFor(async () => expect(await step.probe(evidence)).toMatchObject({ state: "done" }), {
        timeout: 20_000,
      });
      expect(await readFile(config, "utf8")).toBe("new\n");
      expect(await applied()).toBe("new\n");
      await rm(bin, { recursive: true });
      await rm(`/var/tmp/millwright-${evidence.mark}`, { recursive: true });
    });

    /** A change that was applied and waits to be confirmed. */
    async function applied1(around: Awaited<ReturnType<typeof startWithNetplan>>, rollback: string) {
      const step = netStep(around.target, rollback);
      const evidence = await step.before();
      await step.act(evidence);
      await vi.waitFor(async () => expect(await around.applied()).toContain("new"), { timeout: 20_000 });
      return { step, evidence };
    }
    const cleanUp = async (bin: string, ...evidence: readonly JsonObject[]) => {
      await rm(bin, { recursive: true });
      for (const { mark } of evidence) await rm(`/var/tmp/millwright-${mark}`, { recursive: true, force: true });
    };

    test("reverts at once when it is undone, and leaves nothing behind", async () => {
      const around = await startWithNetplan();
      const { step, evidence } = await applied1(around, "100");
      expect(await step.undo(evidence)).toBeUndefined();
      expect(await readFile(around.config, "utf8")).toBe("old\n");
      expect(await around.applied()).toBe("new\nold\n");
      await expect(step.probe(evidence)).rejects.toThrow("was reverted");
      expect(await step.undo(evidence)).toBeUndefined();
      expect((await readdir(around.bin)).sort()).toEqual(["90-millwright.yaml", "applied", "netplan"]);
      await cleanUp(around.bin, evidence);
    });

    test("that was undone before its start reached the machine is never made", async () => {
      const around = await startWithNetplan();
      const step = netStep(around.target, "100");
      const evidence = await step.before();
      expect(await step.undo(evidence)).toBeUndefined();
      await expect(step.act(evidence)).rejects.toThrow("could not be started");
      await expect(step.probe(evidence)).rejects.toMatchObject({
        disposition: "retry",
        message: expect.stringContaining("exit code 143"),
      });
      expect(await step.undo(evidence)).toBeUndefined();
      expect(await readFile(around.config, "utf8")).toBe("old\n");
      await cleanUp(around.bin, evidence);
    });

    test("that was confirmed stays when it is undone too late, and says so", async () => {
      const around = await startWithNetplan();
      const { step, evidence } = await applied1(around, "100");
      await vi.waitFor(async () => expect(await step.probe(evidence)).toMatchObject({ state: "done" }), {
        timeout: 20_000,
      });
      expect(await step.undo(evidence)).toMatchObject({ stays: expect.stringContaining("confirmed"), facts: {} });
      expect(await readFile(around.config, "utf8")).toBe("new\n");
      await cleanUp(around.bin, evidence);
    });

    test("that succeeded is not reverted by an earlier one that nobody has confirmed, be it the same", async () => {
      const around = await startWithNetplan();
      const first = await applied1(around, "5");
      const step = netStep(around.target, "60");
      const evidence = await step.before();
      await step.act(evidence);
      await vi.waitFor(async () => expect(await step.probe(evidence)).toMatchObject({ state: "done" }), {
        timeout: 20_000,
      });
      await vi.waitFor(() => expect(first.step.probe(first.evidence)).rejects.toThrow("was reverted"), {
        timeout: 20_000,
      });
      expect(await readFile(around.config, "utf8")).toBe("new\n");
      expect(await around.applied()).toBe("new\nold\nnew\n");
      await cleanUp(around.bin, evidence, first.evidence);
    });

    test("leaves alone what somebody else has written since", async () => {
      const around = await startWithNetplan();
      const { step, evidence } = await applied1(around, "100");
      await writeFile(around.config, "by hand\n");
      expect(await step.undo(evidence)).toMatchObject({ stays: expect.stringContaining("somebody else") });
      expect(await readFile(around.config, "utf8")).toBe("by hand\n");
      await expect(step.probe(evidence)).rejects.toMatchObject({ disposition: "fail" });
      await cleanUp(around.bin, evidence);
    });

    describe.skipIf(!canMount)("on a disk that is full (skipped where no file system can be mounted)", () => {
      /** The settings are all that is on the small disk; whoever signs in is the only one who sees them. */
      async function startOnSmallDisk(size: string, taken: number) {
        const bin = await mkdtemp(join(tmpdir(), "millwright-netplan-"));
        await writeFile(join(bin, "netplan"), "#!/bin/sh\ntrue\n", { mode: 0o755 });
        const disk = join(bin, "disk");
        await mkdir(disk);
        const { target } = await sshd(`SetEnv NETPLAN_DIRECTORY=${disk} PATH=${bin}:/usr/bin:/bin\n`, {
          smallDisk: { size, path: disk },
        });
        const config = join(disk, "90-millwright.yaml");
        await run(target, `printf '%06912d' 7 > ${config}; printf %0${taken}d 0 > ${disk}/other\n`);
        const length = async () => Number((await run(target, `wc -c < ${config}`)).output);
        expect(await length()).toBe(6_912);
        return { bin, target, config, length, fill: () => run(target, `cat /dev/zero > ${disk}/more 2>/dev/null\n`) };
      }

      test("is not begun when the settings from before cannot be kept whole", async () => {
        const { bin, target, length } = await startOnSmallDisk("24k", 12_288);
        const step = netStep(target, "5");
        const evidence = await step.before();
        await step.act(evidence);
        await vi.waitFor(() => expect(step.probe(evidence)).rejects.toThrow("exit code 3"), { timeout: 20_000 });
        expect(await length()).toBe(6_912);
        await cleanUp(bin, evidence);
      });

      test("reverts although the disk has filled up since", async () => {
        const { bin, target, length, fill } = await startOnSmallDisk("32k", 1);
        const step = netStep(target, "100");
        const evidence = await step.before();
        await step.act(evidence);
        await vi.waitFor(async () => expect(await length()).toBe(4), { timeout: 20_000 });
        await fill();
        expect(await step.undo(evidence)).toBeUndefined();
        expect(await length()).toBe(6_912);
        await cleanUp(bin, evidence);
      });
    });

    test("is reverted by the machine when nobody reaches it", async () => {
      const { target, config, applied, bin } = await startWithNetplan();
      const step = netStep(target, "5");
      const evidence = await step.before();
      await step.act(evidence);
      await vi.waitFor(async () => expect(await applied()).toBe("new\nold\n"), { timeout: 20_000 });
      expect(await readFile(config, "utf8")).toBe("old\n");
      await vi.waitFor(() => expect(step.probe(evidence)).rejects.toThrow("was reverted"), { timeout: 20_000 });
      await rm(bin, { recursive: true });
      await rm(`/var/tmp/millwright-${evidence.mark}`, { recursive: true });
    });
  });

  test("output beyond the cap is left out, and said so", async () => {
    const small = createSshProvider({ mostOutput: 1_000 });
    try {
      const { target } = await sshd();
      let passed = "";
      const onOutput = (text: Uint8Array) => {
        passed += Buffer.from(text).toString();
      };
      const script = "i=0; while [ $i -lt 500 ]; do echo 0123456789; i=$((i + 1)); done\n";
      expect(
        await small.can.exec.run(target, { script, env: {}, timeout: seconds(10), onOutput }, aCall()),
      ).toMatchObject({ code: 0 });
      expect(passed).toMatch(/output beyond 1000 bytes is left out/);
      expect(passed.length).toBeLessThan(1_100);
    } finally {
      small.close();
    }
  });

  test("a host that accepts and says nothing is given up at the deadline", async () => {
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const quick = createSshProvider({ connectTimeout: milliseconds(200) });
    try {
      const { port } = silent.address() as { port: number };
      const target = { ...(await sshd()).target, port };
      await expect(quick.can.exec.readHostKey(target, aCall())).rejects.toMatchObject({ family: "silent" });
    } finally {
      quick.close();
      silent.close();
    }
  });
});

/** One that is stopped with the test. */
async function sshd(more = "", options: SshdOptions = {}): Promise<RealSshServer> {
  const server = await startSshd(more, options);
  servers.push(server);
  return server;
}

/** Whether it does anything still: who has ended and was not waited for yet has no environment any more. */
function isAlive(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`).length > 0;
  } catch {
    return false;
  }
}

/** The same, with this carried out just before a script is launched. */
const stoppingJustBeforeLaunch = ({ can: { exec } }: SshProvider, command: string): SshProvider["can"]["exec"] => ({
  ...exec,
  run: (target, script, call) =>
    exec.run(target, { ...script, script: script.script.replace('launch=""', `${command}\nlaunch=""`) }, call),
});
