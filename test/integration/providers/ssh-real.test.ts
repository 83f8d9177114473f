import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import type { SshTarget } from "../../../src/capabilities/ssh-target.ts";
import { milliseconds, seconds } from "../../../src/kernel/duration.ts";
import { createSshProvider, type SshProvider } from "../../../src/providers/ssh/ssh-provider.ts";
import {
  endDetached,
  newMark,
  OutputReader,
  readState,
  startDetached,
} from "../../../src/runs/steps/detached-script.ts";
import { benchOf } from "../../../src/runs/steps/step-bench.ts";
import { accept, hasSshd, newKey, type RealSshServer, startSshd } from "../../support/openssh-server.ts";

let provider: SshProvider;
const servers: RealSshServer[] = [];

beforeEach(() => {
  provider = createSshProvider();
});
afterEach(async () => {
  provider.close();
  for (const server of servers.splice(0)) await server.stop();
});

describe.skipIf(!hasSshd)("against the OpenSSH server (skipped where openssh-server is not installed)", () => {
  const run = (target: SshTarget, script: string, env: Record<string, string> = {}) =>
    provider.can.exec.run(target, { script, env, timeout: seconds(10) }, aCall());

  test("a script comes by standard input, with its variables, and its exit code comes back", async () => {
    const { target } = await sshd();
    const text = `it's $HOME; "$(id)"\nand a second line`;
    const exit = await run(target, 'printf %s "$SAID"; echo oops >&2; exit 7\n', { SAID: text });
    expect(exit).toEqual({ code: 7, signal: null, output: text });
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
    await expect(run({ ...through, jumpHosts: wrong }, "true\n")).rejects.toMatchObject({
      disposition: "intervene",
      reason: "certificate",
    });
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
      reason: "credentials",
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
    await vi.waitFor(() => expect(existsSync(begun)).toBe(true), { timeout: 5_000 });
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
    await vi.waitFor(async () => expect(await readState(script)).toEqual({ is: "running" }));
    provider.close();
    provider = createSshProvider();
    const again = { ...script, exec: provider.can.exec };
    expect(await readState(again)).toEqual({ is: "running" });
    const reader = new OutputReader();
    const seen: string[] = [];
    const log = (chunk: string | Uint8Array, stream = "stdout") => void seen.push(`${stream}: ${Buffer.from(chunk)}`);
    await reader.passOn(again, { log, basis: 1 });
    await startDetached(again, { text, env: {} });
    await writeFile(go, "");
    await vi.waitFor(async () => expect(await readState(again)).toEqual({ is: "ended", code: 3 }), { timeout: 5_000 });
    await reader.passOn(again, { log, basis: 2 });
    await rm(`/var/tmp/millwright-${script.mark}`, { recursive: true });
    expect(seen).toEqual(["stdout: first\n", "stdout: second it's\n", "stderr: bad\n"]);
  });

  test("a detached script is ended with all that it started, and seen to have been cut off", async () => {
    const { target, directory } = await sshd();
    const script = { mark: newMark(), exec: provider.can.exec, ssh: target, call: aCall() };
    const inner = join(directory, "inner");
    await startDetached(script, { text: `sh -c 'echo $$ > ${inner}; sleep 600; true'; echo over`, env: {} });
    await vi.waitFor(() => expect(existsSync(inner)).toBe(true), { timeout: 5_000 });
    await endDetached(script);
    const pid = (await readFile(inner, "utf8")).trim();
    await vi.waitFor(() => expect(existsSync(`/proc/${pid}`)).toBe(false), { timeout: 5_000 });
    expect(await readState(script)).toEqual({ is: "cut_off" });
    await rm(`/var/tmp/millwright-${script.mark}`, { recursive: true });
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
        timeout: 10_000,
      });
      expect(await readFile(config, "utf8")).toBe("new\n");
      expect(await applied()).toBe("new\n");
      await rm(bin, { recursive: true });
      await rm(`/var/tmp/millwright-${evidence.mark}`, { recursive: true });
    });

    test("is taken back by the machine when nobody reaches it", async () => {
      const { target, config, applied, bin } = await startWithNetplan();
      const step = netStep(target, "5");
      const evidence = await step.before();
      await step.act(evidence);
      await vi.waitFor(async () => expect(await applied()).toBe("new\nold\n"), { timeout: 15_000 });
      expect(await readFile(config, "utf8")).toBe("old\n");
      await vi.waitFor(() => expect(step.probe(evidence)).rejects.toThrow("taken back"), { timeout: 5_000 });
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
      await expect(quick.can.exec.readHostKey(target, aCall())).rejects.toMatchObject({ reason: "unreachable" });
    } finally {
      quick.close();
      silent.close();
    }
  });
});

/** One that is stopped with the test. */
async function sshd(more = ""): Promise<RealSshServer> {
  const server = await startSshd(more);
  servers.push(server);
  return server;
}
