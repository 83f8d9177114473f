import { Agent, request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import type { Reports, ReportsSent } from "./report-load.ts";

/** Sends progress as installers do, and times the answers; started by `report-load.ts`, to which it tells them. */
const agent = new Agent({ keepAlive: true, maxSockets: 256 });
let boot = 0;

function post(url: URL, body: string): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const sending = request(url, { method: "POST", agent, headers }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
      answer.on("error", reject);
    });
    sending.on("error", reject);
    sending.end(body);
  });
}

async function sendAll({ url, macs, milliseconds, perSecond, atOnce }: Reports): Promise<ReportsSent> {
  boot += 1;
  const target = new URL("/api/v1/report", url);
  const latencies: number[] = [];
  const failures = new Set<string>();
  let sent = 0;
  const report = async (dueAt: number) => {
    const n = sent;
    sent += 1;
    const body = {
      mac_address: macs[n % macs.length],
      installation_status: "progress",
      installation_progress: n % 101,
      report_id: `${process.pid}-${boot}-${n}`,
    };
    try {
      const { status, text } = await post(target, JSON.stringify(body));
      if (status === 200) latencies.push(performance.now() - dueAt);
      else failures.add(`${status} ${text.slice(0, 200)}`);
    } catch (error) {
      failures.add(String(error));
    }
  };
  const startedAt = performance.now();
  const running: Promise<void>[] = [];
  if (perSecond === undefined) {
    const caller = async () => {
      while (performance.now() - startedAt < milliseconds) await report(performance.now());
    };
    for (let count = 0; count < atOnce; count += 1) running.push(caller());
  } else {
    // By the clock, and late ones from when they were due: a server that stalls must not slow its nodes down.
    const all = Math.round((perSecond * milliseconds) / 1_000);
    while (running.length < all) {
      const due = Math.min(all, Math.floor(((performance.now() - startedAt) * perSecond) / 1_000));
      while (running.length < due) running.push(report(startedAt + (running.length * 1_000) / perSecond));
      if (running.length < all) await pause(1);
    }
  }
  await Promise.all(running);
  const took = performance.now() - startedAt;
  return { sent, answered: latencies.length, latencies, took, failures: [...failures].slice(0, 5) };
}

process.on("message", async (reports: Reports) => {
  const sent = await sendAll(reports);
  process.send?.(sent);
});
process.once("disconnect", () => process.exit(0));
