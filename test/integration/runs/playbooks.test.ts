import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Run_Phase, type Step } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { Runbooks } from "../../../src/runs/steps/scripts/runbooks.ts";
import { setMachineCredentials } from "../../../src/services/machine/credentials.ts";
import { needing } from "../../support/counterparts/needing.ts";
import { hasSshd, newKey, type RealSshServer, startSshd } from "../../support/counterparts/openssh-server.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunSurface, startRunSurface, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

const hasAnsible = spawnSync("sh", ["-c", "command -v ansible-playbook"]).status === 0;
const missing = [hasSshd ? "" : "openssh-server", hasAnsible ? "" : "ansible-core"].filter((each) => each !== "");

/** Templates in values, and settings by name: neither is carried out on our side. */
const AWKWARD = "{{ lookup('pipe', 'touch /tmp/millwright-never') }} \"quoted\" 'too'";
const playbook = (header: string, ...tasks: readonly string[]) =>
  `---\n${header}- hosts: all\n  gather_facts: false\n  tasks:\n${tasks.map((task) => `    - ${task}\n`).join("")}`;

describe.skipIf(missing.length > 0)(needing("playbooks", missing.join(" ")), () => {
  let directory: string;
  let surface: RunSurface;
  let host: RealSshServer;
  const at = (name: string) => join(directory, name);

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "millwright-playbooks-"));
    host = await startSshd("ListenAddress 127.0.0.2\n");
    process.env.MILLWRIGHT_SECRET_OF_OURS = "not for plays";
    const wait = `raw: 'echo $$ >> ${at("began")}-{{ inventory_hostname }}; while [ ! -e ${at("go")} ]; do sleep 0.05; done'`;
    surface = await startRunSurface({
      controller: true,
      runbooks: new Runbooks(
        {},
        {
          "say.yml": playbook(
            "# Says what it was given.\n",
            `raw: "printf '%s' {{ millwright_args.GREETING | quote }} > ${at("said")}"`,
            `debug: { msg: "on {{ inventory_hostname }} with {{ lookup('env', 'MILLWRIGHT_SECRET_OF_OURS') | length }} bytes of secrets" }`,
          ),
          "fail.yml": playbook("", "raw: exit 3"),
          "once.yml": playbook("", wait),
          "again.yml": playbook("# Idempotent: yes\n", wait),
        },
      ),
    });
  }, 60_000);
  afterAll(async () => {
    await surface.close();
    await host.stop();
    delete process.env.MILLWRIGHT_SECRET_OF_OURS;
    rmSync(directory, { recursive: true, force: true });
  });

  async function begin(machineId: string, scriptRef: string, options: { hostKey?: string; args?: object } = {}) {
    const { address, port, username, credentials } = host.target;
    if (!("privateKey" in credentials)) throw new Error("only keys are accepted");
    const sshHostKey = options.hostKey ?? host.target.hostKey ?? "";
    await surface.machines.registerMachine({
      machine: { machineId, spec: { sshEndpoint: `${address}:${port}`, sshHostKey } },
    });
    const ssh = { sshUsername: username, sshPrivateKey: credentials.privateKey };
    await setMachineCredentials(surface.deps, tester, { machineId, bmcUsername: "", bmcPassword: "", ...ssh });
    const kind = { case: "ssh", value: { scriptRef, args: options.args ?? {} } };
    const steps = [{ name: "play", maxRetries: 0, timeoutSeconds: 60, kind }] as unknown as Step[];
    await surface.plans.createPlan({ plan: { planId: `plan-of-${machineId}`, steps } });
    return surface.runs.startRun({ requestId: "r", machineId, planId: `plan-of-${machineId}` });
  }
  const timesBegun = (machineId: string) =>
    existsSync(at(`began-${machineId}`))
      ? readFileSync(at(`began-${machineId}`), "utf8")
          .trim()
          .split("\n").length
      : 0;
  const saidOf = async (runId: string) =>
    (await surface.logs(runId)).map(({ data }) => Buffer.from(data).toString()).join("");
  const playDirectories = () =>
    ["/dev/shm", tmpdir()].flatMap((place) =>
      existsSync(place) ? readdirSync(place).filter((name) => name.startsWith("millwright-play-")) : [],
    );

  test("a play runs on our side against the machine alone, with its args as text and nothing of our environment", async () => {
    const { runId } = await begin("m-say", "say.yml", { args: { GREETING: AWKWARD } });
    const run = await surface.ended(runId);
    const said = await saidOf(runId);
    expect(run.phase, `${run.error?.message}\n${said}`).toBe(Run_Phase.SUCCEEDED);
    expect(readFileSync(at("said"), "utf8")).toBe(AWKWARD);
    expect(existsSync("/tmp/millwright-never")).toBe(false);
    expect(said).toContain("on m-say with 0 bytes of secrets");
    expect(said).toMatch(/m-say\s+: ok=2/); // Ansible's own recap
    expect(playDirectories()).toEqual([]);
  });

  test("a play that fails fails the run with its exit code, and its output is the run's log", async () => {
    const { runId } = await begin("m-fail", "fail.yml");
    const run = await surface.ended(runId);
    expect(run).toMatchObject({ phase: Run_Phase.FAILED, error: { message: expect.stringContaining("exit code 2") } });
    expect(await saidOf(runId)).toContain("non-zero return code");
  });

  test("a machine that shows another host key than the pinned one is not signed in to", async () => {
    const { runId } = await begin("m-other-key", "say.yml", { hostKey: newKey().publicKey, args: { GREETING: "x" } });
    expect(await surface.ended(runId)).toMatchObject({ phase: Run_Phase.FAILED });
    expect(await saidOf(runId)).toContain("Host key verification failed");
  });

  test("a cancel ends the play, and says what may be left", async () => {
    const { runId } = await begin("m-cancel", "once.yml");
    await eventually(async () => timesBegun("m-cancel") === 1, { what: "the play is in the middle", within: 30_000 });
    await surface.runs.cancelRun({ runId });
    const run = await surface.ended(runId);
    expect(run).toMatchObject({ phase: Run_Phase.CANCELED });
    expect(playDirectories()).toEqual([]);
    writeFileSync(at("go"), "");
  });

  /** As a replica that stands still loses it: another one has the run, and is gone again in a moment. */
  async function loseLease(runId: string): Promise<void> {
    await eventually(
      async () =>
        (await surface.db.execute(
          `update work set lease_owner = 'another', epoch = epoch + 1, lease_until = now() + interval '7 s', wake_at = now() + interval '7 s'
            where kind = 'run' and id = $1 and lease_owner is not null`,
          [runId],
        )) > 0,
      { what: "the lease is another's" },
    );
  }
  async function interrupt(machineId: string, scriptRef: string): Promise<string> {
    const { runId } = await begin(machineId, scriptRef);
    await eventually(async () => timesBegun(machineId) === 1, { what: "the play is in the middle", within: 30_000 });
    await loseLease(runId);
    return runId;
  }

  test("a play that was interrupted is not repeated, and says why, unless it is declared idempotent", async () => {
    rmSync(at("go"), { force: true });
    const [once, again] = await Promise.all([interrupt("m-once", "once.yml"), interrupt("m-again", "again.yml")]);
    await eventually(async () => playDirectories().length === 0, { what: "both have ended", within: 15_000 });
    const run = await surface.ended(once, 60_000);
    expect(run.error?.message).toMatch(
      /once.yml was interrupted, and may have been carried out in part; it is not repeated/,
    );
    await eventually(async () => timesBegun("m-again") === 2, { what: "it is carried out again", within: 60_000 });
    writeFileSync(at("go"), "");
    expect((await surface.ended(again)).phase).toBe(Run_Phase.SUCCEEDED);
    expect(timesBegun("m-once")).toBe(1);
    expect(playDirectories()).toEqual([]);
  }, 120_000);

  test("a name that is no file of the script directory is refused, whatever it is", async () => {
    for (const [nth, ref] of ["/etc/ansible/site.yml", "../site.yml", "unknown.yml"].entries()) {
      const refused = await begin(`m-path-${nth}`, ref).then(
        () => "taken",
        (error: unknown) => ConnectError.from(error).rawMessage,
      );
      expect(refused).toMatch(/script/);
    }
  });
});
