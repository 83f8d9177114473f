import { fork } from "node:child_process";
import { once } from "node:events";

export interface Calls {
  readonly method: "startRun" | "followRun" | "getMachine" | "listMachines";
  /** Taken in turn. */
  readonly ids: readonly string[];
  readonly filter?: string;
  readonly runType?: string;
  readonly planId?: string;
  readonly atOnce: number;
  /** Either so many, or as many as there can be within the time. */
  readonly times?: number;
  readonly milliseconds?: number;
}

export interface CallsMade {
  /** In milliseconds, in the order of the answers. */
  readonly latencies: readonly number[];
  readonly took: number;
  /** Of logs that were followed. */
  readonly bytes: number;
}

export interface GrpcLoad {
  make(calls: Calls): Promise<CallsMade>;
  stop(): Promise<void>;
}

/** Callers in a process of their own, so that what they cost is not the server's. */
export function startGrpcLoad(address: string): GrpcLoad {
  const clients = fork(new URL("grpc-clients.ts", import.meta.url), [address], { serialization: "advanced" });
  const gone = new AbortController();
  clients.once("exit", (code) => gone.abort(new Error(`the callers ended with ${code}`)));
  return {
    async make(calls) {
      const answered = once(clients, "message", { signal: gone.signal });
      clients.send(calls);
      const [made] = (await answered) as [CallsMade | { error: string }];
      if ("error" in made) throw new Error(made.error);
      return made;
    },
    async stop() {
      const ended = once(clients, "exit");
      clients.disconnect();
      await ended;
    },
  };
}
