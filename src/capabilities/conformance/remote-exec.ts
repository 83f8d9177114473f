import { beforeEach, describe, expect, test } from "vitest";
import { StepFailure } from "../../kernel/errors.ts";
import { seconds } from "../../kernel/time/duration.ts";
import { fingerprintOf } from "../host-key.ts";
import { need, type Provider } from "../provider.ts";
import type { RemoteExec, RemoteScript } from "../remote-exec.ts";
import type { SshTarget } from "../ssh-target.ts";
import { aCall, aFencedCall } from "./device-bench.ts";

/** An operating system that runs, and how to get at it: with its right key pinned, and a private key that it accepts. */
export interface ExecBench {
  readonly provider: Provider;
  readonly target: SshTarget & { readonly hostKey: string };
  /** A small text file on it, and what it says. */
  readonly file: { readonly path: string; readonly text: string };
  /** A private key that it does not accept, and the host key of another machine. */
  readonly foreign: { readonly privateKey: string; readonly hostKey: string };
  /** Where nobody listens. */
  readonly nowhere: Pick<SshTarget, "address" | "port">;
}

/** What every way to run things on machines must do. */
export function describeRemoteExec(name: string, setUp: () => Promise<ExecBench>): void {
  describe(`remote execution on ${name}`, () => {
    let bench: ExecBench;
    let exec: RemoteExec;
    beforeEach(async () => {
      bench = await setUp();
      exec = need(bench.provider, ["exec"]).exec;
    });
    const run = (script: string, more: Partial<RemoteScript> = {}, target: SshTarget = bench.target, call = aCall()) =>
      exec.run(target, { script, env: {}, timeout: seconds(20), ...more }, call);

    test("gives back how a script ended and what it wrote", async () => {
      expect(await run("echo hello\nexit 7\n")).toEqual({ code: 7, signal: null, output: "hello\n" });
      expect(await run("true\n")).toEqual({ code: 0, signal: null, output: "" });
    });

    test("hands variables over as they are, whatever is in them", async () => {
      const text = `it's $HOME; "$(id)" \`id\` \\ and\na second line`;
      expect(await run(`printf '%s' "$SAID"\n`, { env: { SAID: text } })).toMatchObject({ code: 0, output: text });
    });

    test("passes output on as it comes, each stream by its name", async () => {
      const seen = { stdout: "", stderr: "" };
      const onOutput: RemoteScript["onOutput"] = (text, stream) => {
        seen[stream] += Buffer.from(text).toString();
      };
      await run("echo out\necho err >&2\n", { onOutput });
      expect(seen).toEqual({ stdout: "out\n", stderr: "err\n" });
    });

    test("reads small files, and tells which are not there", async () => {
      expect(await exec.readFile(bench.target, bench.file.path, aCall())).toEqual({
        text: bench.file.text,
        hostKey: bench.target.hostKey,
      });
      expect((await exec.readFile(bench.target, "/no/such/file", aCall())).text).toBeUndefined();
    });

    test("reads the host key that is shown, whichever is pinned", async () => {
      for (const hostKey of [null, bench.foreign.hostKey])
        expect(await exec.readHostKey({ ...bench.target, hostKey }, aCall())).toBe(bench.target.hostKey);
    });

    test("takes any host key where none is pinned, with a private key", async () => {
      expect(await run("echo hello\n", {}, { ...bench.target, hostKey: null })).toMatchObject({ output: "hello\n" });
    });

    test("knows the pinned key by its fingerprint as well", async () => {
      const hostKey = fingerprintOf(bench.target.hostKey);
      expect(await run("echo hello\n", {}, { ...bench.target, hostKey })).toMatchObject({ output: "hello\n" });
      const foreign = { ...bench.target, hostKey: fingerprintOf(bench.foreign.hostKey) };
      await expect(run("true\n", {}, foreign)).rejects.toMatchObject({ family: "unproven" });
    });

    test("runs nothing on a machine that shows another key than the pinned one", async () => {
      const other = { ...bench.target, hostKey: bench.foreign.hostKey };
      const intervene = { disposition: "intervene", family: "unproven" };
      await expect(run("true\n", {}, other)).rejects.toMatchObject(intervene);
      await expect(exec.readFile(other, bench.file.path, aCall())).rejects.toMatchObject(intervene);
    });

    test("fails for good where its key is not accepted, and does not say the key", async () => {
      const { privateKey } = bench.foreign;
      const failure: unknown = await run("true\n", {}, { ...bench.target, credentials: { privateKey } }).catch(
        (error: unknown) => error,
      );
      expect(failure).toMatchObject({ disposition: "fail", family: "keeps_out" });
      expect((failure as Error).message).not.toContain(privateKey.split("\n")[1]);
    });

    test("can be tried again where nobody answers", async () => {
      await expect(run("true\n", {}, { ...bench.target, ...bench.nowhere })).rejects.toMatchObject({
        disposition: "retry",
        family: "silent",
      });
    });

    test("sends nothing once the lease is gone", async () => {
      await expect(run("true\n", {}, bench.target, aFencedCall())).rejects.toThrow("the lease is gone");
      await expect(exec.readHostKey(bench.target, aFencedCall())).rejects.toThrow("the lease is gone");
    });

    test("ends when it is told to stop, though the script goes on", async () => {
      const stop = new AbortController();
      const running = run("echo begun\nsleep 5\n", { onOutput: () => stop.abort() }, bench.target, {
        ...aCall(),
        signal: stop.signal,
      });
      await expect(running).rejects.toBeInstanceOf(StepFailure);
    });
  });
}
