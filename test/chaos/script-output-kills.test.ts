import { mkdirSync, writeFileSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { setMachineCredentials } from "../../src/services/machine/credentials.ts";
import { createPlan } from "../../src/services/run/plans.ts";
import { openSecretStore } from "../../src/store/access/secrets.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import { needing } from "../support/counterparts/needing.ts";
import { hasSshd, startSshd } from "../support/counterparts/openssh-server.ts";
import { createTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { openProcessBench } from "../support/processes/process-bench.ts";
import { adminToken, type ServerProcess, startServerProcess } from "../support/processes/server-process.ts";
import { tester } from "../support/run-bench.ts";

/** Much at once, and then more and more on both streams, with characters of several bytes, until it is told to end. */
const TALKS = `n=0
while [ "$n" -lt 3000 ]; do n=$((n + 1)); echo "line $n – café 🚀"; done
while [ ! -e "$GO" ]; do
  n=$((n + 1)); printf 'caf\\303'; sleep 0.01; printf '\\251 %s 🚀 ' "$n"; echo "oops $n" >&2
done
printf 'at last: %s' "$n"
`;
const MACHINE = "m-talks";

/** How one replica after the other dies over it; the last one goes on. */
const DEATHS = [
  ["before anything of a look is written", "committer:before:run:RUNNING@4"],
  ["with the log half written", "run-logs:appended:run@2"],
  ["just after it was written", "committer:after:run:RUNNING@2"],
  ["at any moment", ""],
] as const;

test.skipIf(!hasSshd)(
  needing(
    "replicas die over a script that writes without end: its log is what it wrote, byte for byte, without hole or repeat",
    hasSshd ? "" : "openssh-server",
  ),
  async () => {
    const bench = openProcessBench();
    const database = await createTestDatabase();
    const host = await startSshd();
    onTestFinished(async () => {
      await bench.close();
      await host.stop();
      await database.drop();
    });
    const { db, url } = database;
    const keyFile = join(bench.directory, "secret-key");
    const scripts = join(bench.directory, "scripts");
    const go = join(bench.directory, "go");
    mkdirSync(scripts);
    writeFileSync(join(scripts, "talks.sh"), TALKS);
    const token = await adminToken(database);
    const replica = (name: string, failPoint: string) =>
      startServerProcess(bench, {
        command: "serve",
        name,
        databaseUrl: url,
        env: {
          MILLWRIGHT_SECRET_KEY_FILE: keyFile,
          MILLWRIGHT_SCRIPTS_DIRECTORY: scripts,
          MILLWRIGHT_EXPLORER_INTERVAL: "1h",
          ...(failPoint !== "" && { MILLWRIGHT_FAILPOINT: failPoint }),
        },
      });
    /** As if the time of the leases of whoever died had passed. */
    const letGo = () =>
      db.execute(
        "update work set wake_at = now(), lease_until = case when lease_until is null then null else now() - interval '1 s' end where kind = 'run'",
      );
    const logged = async () => {
      const text = "select stream, data from run_logs order by seq";
      return db.query<{ stream: string; data: Buffer }>(text);
    };

    async function startTalking({ ask }: ServerProcess): Promise<void> {
      const { address, port, hostKey, username, credentials } = host.target;
      const spec = { sshEndpoint: `${address}:${port}`, sshHostKey: hostKey ?? "" };
      await ask("baremetal.v1.MachineService/RegisterMachine", { machine: { machineId: MACHINE, spec } }, token);
      if (!("privateKey" in credentials)) throw new Error("only keys are accepted");
      const deps = { db, stores: allStores, secrets: openSecretStore({ keyFile }), maxFindByIds: 100 };
      const key = { sshUsername: username, sshPrivateKey: credentials.privateKey };
      await setMachineCredentials(deps, tester, { machineId: MACHINE, bmcUsername: "", bmcPassword: "", ...key });
      const payload = { script_ref: "talks.sh", args: { GO: go } };
      const talk = { name: "talk", kind: "ssh", payload, timeoutSeconds: 300, maxRetries: 0 };
      await createPlan(deps, tester, { planId: "plan-talks", displayName: "", steps: [talk] });
      const asked = { requestId: "once", machineId: MACHINE, planId: "plan-talks" };
      await ask("baremetal.v1.RunService/StartRun", asked, token);
    }

    const seen: number[] = [];
    for (const [index, [when, failPoint]] of DEATHS.entries()) {
      const dying = await replica(`dies-${index}`, failPoint);
      const { process } = dying;
      if (index === 0) await startTalking(dying);
      if (failPoint === "") {
        const before = (await logged()).length;
        await eventually(async () => (await logged()).length > before, { what: "more of it is in the log" });
        process.signal("SIGKILL");
      }
      expect(await process.exited, `${when}\n${process.transcript()}`).toEqual({ code: null, signal: "SIGKILL" });
      seen.push((await logged()).length);
      await letGo();
    }
    expect(seen.at(-1), `${seen}`).toBeGreaterThan(seen[0] ?? 0);

    const last = await replica("goes-on", "");
    writeFileSync(go, "");
    const runs = () =>
      db.query<{ state: string; mark: string }>(
        "select state, facts -> 'steps' -> 0 -> 'evidence' ->> 'mark' as mark from runs",
      );
    const run = await eventually(async () => (await runs()).find(({ state }) => state === "SUCCEEDED"), {
      what: "the run has SUCCEEDED",
      within: 60_000,
      seen: async () => `${JSON.stringify(await runs())}\n${last.process.transcript()}`,
    });
    const directory = `/var/tmp/millwright-${run.mark}`;
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    // Lines of our own are a piece each, and may end what the script left open.
    const isOurs = /^\n?(step talk |\[ssh\] talks\.sh )[^\n]*\n$/;
    const pieces = (await logged()).map((row) => ({ ...row, text: row.data.toString("utf8") }));
    for (const stream of ["stdout", "stderr"]) {
      const said = pieces.filter((piece) => piece.stream === stream && !isOurs.test(piece.text));
      const log = said.map(({ text }) => text).join("");
      expect(log === (await readFile(join(directory, stream), "utf8")), `${stream}: ${log.length} characters`).toBe(
        true,
      );
      expect(said.filter(({ text }) => text.includes("\u{fffd}"))).toEqual([]);
    }
  },
  180_000,
);
