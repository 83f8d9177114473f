import { setTimeout as pause } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { RackService } from "../../contract/millwright/v1/rack_pb.js";
import type { Site } from "../../simulator/site.ts";
import type { BenchDatabase } from "../bench-server.ts";
import type { RackProcess } from "./rack-process.ts";

/**
 * Milliseconds from the call that requests a power cycle of a whole rack until the first of its devices is commanded. One request at a
 * time, each of another rack, while all others are at rest; as many as there can be within the time.
 */
export async function requestLatencies(
  { db }: BenchDatabase,
  serving: RackProcess,
  { racks, machines }: Site,
  { most, milliseconds }: { readonly most: number; readonly milliseconds: number },
): Promise<number[]> {
  const service = createClient(RackService, createGrpcTransport({ baseUrl: `http://${serving.grpcAddress}` }));
  const rackOf = new Map(machines.map(({ id, rack }) => [id, rack]));
  const latencies: number[] = [];
  const until = performance.now() + milliseconds;
  for (let count = 0; count < most && performance.now() < until; count += 1) {
    const rackId = racks[(count * 7) % racks.length]?.id ?? "";
    const commanded = Promise.withResolvers<bigint>();
    serving.onCommand = ({ device, at }) => {
      if (rackOf.get(device) === rackId) commanded.resolve(at);
    };
    const askedAt = process.hrtime.bigint();
    await service.startRackMaintenance({ rackId, activities: [{ kind: "power_sequence", operation: "cycle" }] });
    latencies.push(Number((await commanded.promise) - askedAt) / 1_000_000);
    await untilDone(db, rackId);
    await pause(5 + Math.random() * 20); // so that the requests fall anywhere between two polls
  }
  serving.onCommand = () => {};
  return latencies;
}

const PATIENCE_MS = 120_000;

async function untilDone(db: BenchDatabase["db"], rackId: string): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const [row] = await db.query<{ state: string; is_pending: boolean }>(
      "select state, maintenance_requested is not null as is_pending from racks where id = $1",
      [rackId],
    );
    if (row?.state === "ready" && !row.is_pending) return;
    if (row?.state === "error" || performance.now() > deadline) throw new Error(`rack ${rackId} is ${row?.state}`);
    await pause(20);
  }
}
