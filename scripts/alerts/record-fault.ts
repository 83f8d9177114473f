/**
 * Records what Prometheus would see of a fault, as the input of `promtool test rules`:
 * `bin/node scripts/alerts/record-fault.ts SERVER SIMULATOR TOKEN_FILE > series.yaml`, against `npm start` at rest.
 *
 * For two minutes nothing is wrong. Then the machines of the first rack do not answer, over any of their protocols, and a run on one of
 * them fails. After that they answer again.
 */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { stringify } from "yaml";

const [server = "", simulator = "", tokenFile = ""] = process.argv.slice(2);
const token = readFileSync(tokenFile, "utf8").trim();
const INTERVAL_SECONDS = 15;
const FAULT_AT = 8;
const CLEARED_AT = 40;
const SAMPLES = 52;
const RUN_AT = 10;

const RECORDED = ["millwright_things_in_trouble", "millwright_things_failing", "millwright_runs_ended_total"];

async function scrape(): Promise<ReadonlyMap<string, string>> {
  const answer = await fetch(`${server}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  const lines = (await answer.text())
    .split("\n")
    .filter((line) => RECORDED.some((name) => line.startsWith(`${name}{`)));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), line.slice(line.lastIndexOf(" ") + 1)]));
}

const toSimulator = (method: string, path: string, body?: object) =>
  fetch(`${simulator}${path}`, { method, ...(body && { body: JSON.stringify(body) }) });

async function startRun(): Promise<void> {
  const answer = await fetch(`${server}/baremetal.v1.RunService/StartRun`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ machineId: "m-rack1-03", type: "REBOOT", requestId: crypto.randomUUID() }),
  });
  process.stderr.write(`run: ${answer.status} ${await answer.text()}\n`);
}

const samples: ReadonlyMap<string, string>[] = [];
for (let at = 0; at < SAMPLES; at++) {
  const began = performance.now();
  samples.push(await scrape());
  if (at === FAULT_AT)
    for (const device of ["m-rack1-*"])
      for (const type of ["drop", "ssh_refused"])
        process.stderr.write(`fault: ${(await toSimulator("POST", "/faults", { device, fault: { type } })).status}\n`);
  if (at === RUN_AT) await startRun();
  if (at === CLEARED_AT) await toSimulator("DELETE", "/faults");
  await delay(INTERVAL_SECONDS * 1_000 - (performance.now() - began));
}

// Prometheus takes a series that is gone for stale at once; of one that has not begun it knows nothing.
const names = [...new Set(samples.flatMap((sample) => [...sample.keys()]))].sort();
const valueAt = (series: string, at: number): string =>
  samples[at]?.get(series) ?? (samples[at - 1]?.has(series) ? "stale" : "_");
const input = names
  .map((series) => ({ series, values: samples.map((_, at) => valueAt(series, at)).join(" ") }))
  .filter(({ values }) => /[1-9]/.test(values));
process.stdout.write(stringify({ interval: `${INTERVAL_SECONDS}s`, input_series: input }, { lineWidth: 0 }));
