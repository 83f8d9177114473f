/**
 * Repaves a machine and follows it to its end. The exit code is the result: 0 when the run SUCCEEDED, 1 when it did not, 2 when it
 * could not be started.
 *
 *   bin/node examples/typescript/repave.ts MACHINE_ID [REQUEST_ID]
 *
 * MILLWRIGHT_SERVER is where the server is (http://127.0.0.1:8080), MILLWRIGHT_TOKEN a token with the role `operator`. Called again
 * with the same request id it follows the same run: give one of your own, and a crash of this program starts nothing twice.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { type Run, Run_Phase, RunService, StepStatus_State } from "../../contract/baremetal/v1/baremetal_pb.js";

type Runs = Client<typeof RunService>;

const { MILLWRIGHT_SERVER = "http://127.0.0.1:8080", MILLWRIGHT_TOKEN = "" } = process.env;
const TRY_AGAIN_AFTER_MS = 1_000;

/** Sends the token with every call. */
const authorize: Interceptor = (next) => (request) => {
  if (MILLWRIGHT_TOKEN !== "") request.header.set("authorization", `Bearer ${MILLWRIGHT_TOKEN}`);
  return next(request);
};

/** A stream ends when the server is restarted or the network fails. Whoever remembers how far it came goes on from there. */
async function goOnUntilDone(follow: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      return await follow();
    } catch (error) {
      if (signal.aborted) return;
      const { code, message } = ConnectError.from(error);
      if (code !== Code.Unavailable && code !== Code.Unknown && code !== Code.Aborted) throw error;
      process.stderr.write(`(the stream broke off: ${message}; going on)\n`);
      await sleep(TRY_AGAIN_AFTER_MS);
    }
  }
}

/** Everything that the run says, from its first chunk. The stream ends when the run has ended and all was sent. */
async function followLogs(runs: Runs, runId: string, signal: AbortSignal): Promise<void> {
  let after = 0n;
  await goOnUntilDone(async () => {
    for await (const chunk of runs.streamRunLogs({ runId, after }, { signal })) {
      (chunk.stream === "stderr" ? process.stderr : process.stdout).write(chunk.data);
      after = chunk.seq;
    }
  }, signal);
}

/** Says when the run moves on. It never ends by itself: the caller aborts it. */
async function followSteps(runs: Runs, { runId, machineId }: Run, signal: AbortSignal): Promise<void> {
  let cursor = "";
  let said = "";
  await goOnUntilDone(async () => {
    for await (const event of runs.watchRuns({ filter: `machine_id=${machineId}`, cursor }, { signal })) {
      cursor = event.cursor;
      if (event.snapshot?.runId !== runId) continue;
      const line = progressOf(event.snapshot);
      if (line !== said) process.stderr.write(`${line}\n`);
      said = line;
    }
  }, signal);
}

function progressOf({ phase, currentStep, steps }: Run): string {
  const done = steps.filter(({ state }) => state === StepStatus_State.SUCCEEDED).length;
  return `== ${Run_Phase[phase]}${currentStep === "" ? "" : `, ${currentStep}`}; steps done: ${done}`;
}

async function main([machineId, requestId = randomUUID()]: readonly string[]): Promise<number> {
  if (machineId === undefined) {
    process.stderr.write("usage: bin/node examples/typescript/repave.ts MACHINE_ID [REQUEST_ID]\n");
    return 2;
  }
  const transport = createConnectTransport({
    baseUrl: MILLWRIGHT_SERVER,
    httpVersion: "1.1",
    interceptors: [authorize],
  });
  const runs = createClient(RunService, transport);
  let run: Run;
  try {
    run = await runs.startRun({ requestId, machineId, type: "REPAVE" });
  } catch (error) {
    const { code, rawMessage } = ConnectError.from(error);
    process.stderr.write(`not started: ${Code[code]}: ${rawMessage}\n`);
    return 2;
  }
  process.stderr.write(`run ${run.runId}\n`);
  const ended = new AbortController();
  const steps = followSteps(runs, run, ended.signal);
  await followLogs(runs, run.runId, ended.signal).finally(() => ended.abort());
  await steps;
  const result = await runs.getRun({ runId: run.runId });
  process.stderr.write(`${Run_Phase[result.phase]}${result.error ? `: ${result.error.message}` : ""}\n`);
  return result.phase === Run_Phase.SUCCEEDED ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
