import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { MachineService, RunService } from "../../contract/baremetal/v1/baremetal_pb.js";
import type { Calls, CallsMade } from "./grpc-load.ts";

/** Makes calls and times them; started by `grpc-load.ts`, to which it reports. */
const CONNECTIONS = 4;
const PAGE = 1_000;
const [address = ""] = process.argv.slice(2);

const clients = Array.from({ length: CONNECTIONS }, () => {
  const transport = createGrpcTransport({ baseUrl: `http://${address}` });
  return { machines: createClient(MachineService, transport), runs: createClient(RunService, transport) };
});

let bytes = 0;

function callOf({ method, ids, filter = "", runType = "", planId = "" }: Calls): (n: number) => Promise<unknown> {
  const clientOf = (n: number) => clients[n % CONNECTIONS] as (typeof clients)[number];
  const idOf = (n: number) => ids[n % ids.length] ?? "";
  switch (method) {
    case "startRun":
      return (n) => clientOf(n).runs.startRun({ requestId: `${process.pid}-${n}`, machineId: idOf(n), type: runType });
    case "followRun":
      return async (n) => {
        const { runs } = clientOf(n);
        const { runId } = await runs.startRun({ requestId: `${process.pid}-${n}`, machineId: idOf(n), planId });
        for await (const { data } of runs.streamRunLogs({ runId })) bytes += data.length;
      };
    case "getMachine":
      return (n) => clientOf(n).machines.getMachine({ machineId: idOf(n) });
    case "listMachines":
      return async (n) => {
        const { machines } = await clientOf(n).machines.listMachines({ filter, pageSize: PAGE });
        if (machines.length !== PAGE) throw new Error(`${filter} found ${machines.length} machines, not ${PAGE}`);
      };
  }
}

async function makeCalls(calls: Calls): Promise<CallsMade> {
  const call = callOf(calls);
  const latencies: number[] = [];
  bytes = 0;
  const until = performance.now() + (calls.milliseconds ?? Number.POSITIVE_INFINITY);
  const most = calls.times ?? Number.POSITIVE_INFINITY;
  let next = 0;
  const startedAt = performance.now();
  const caller = async () => {
    while (next < most && performance.now() < until) {
      const n = next;
      next += 1;
      const sentAt = performance.now();
      await call(n);
      latencies.push(performance.now() - sentAt);
    }
  };
  await Promise.all(Array.from({ length: calls.atOnce }, caller));
  return { latencies, took: performance.now() - startedAt, bytes };
}

process.on("message", (calls: Calls) => {
  makeCalls(calls).then(
    (made) => process.send?.(made),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
process.on("disconnect", () => process.exit(0));
