import type { ServiceImpl } from "@connectrpc/connect";
import type { SystemService } from "../../../contract/millwright/v1/system_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import {
  drainReplicas,
  listReplicas,
  type Replica,
  resumeReplicas,
  setReplicaLogLevel,
} from "../../services/system/replicas.ts";
import { readDatabaseVersion, readRestore, type SystemInfo } from "../../services/system/system.ts";
import { timestampOf } from "../convert/fields.ts";
import { callerKey } from "../transport/interceptors.ts";

export const system = (deps: ServiceDeps, info: SystemInfo): ServiceImpl<typeof SystemService> => ({
  async getSystem(_request, { values }) {
    const { name, roles } = values.get(callerKey);
    const restore = await readRestore(deps);
    const ahead = info.clock.localIsAheadBy;
    return {
      version: info.version,
      commit: info.commit,
      schema: info.schema,
      startedAt: timestampOf(info.startedAt),
      databaseVersion: await readDatabaseVersion(deps),
      replicaId: info.replica,
      caller: { name: name ?? "", roles: [...roles] },
      ...(ahead !== undefined && { clockAheadSeconds: Math.round(ahead) / 1_000 }),
      clockTrouble: info.clock.trouble ?? "",
      ...(restore && { restoreReview: restore.review, parked: restore.parked }),
    };
  },
  async listReplicas() {
    return { replicas: (await listReplicas(deps.db)).map(replicaOf) };
  },
  async drainReplicas({ replicas: names, force }, { values }) {
    return { replicas: (await drainReplicas(deps, values.get(callerKey), { names, force })).map(replicaOf) };
  },
  async resumeReplicas({ replicas: names }, { values }) {
    return { replicas: (await resumeReplicas(deps, values.get(callerKey), names)).map(replicaOf) };
  },
  async setLogLevel({ level, replicas: names, forSeconds: seconds }, { values }) {
    const changed = await setReplicaLogLevel(deps, values.get(callerKey), { names, level, seconds });
    return { replicas: changed.map(replicaOf) };
  },
});

const replicaOf = ({ startedAt, seenAt, isLiving, working, logLevel, logLevelUntil, ...own }: Replica) => ({
  ...own,
  startedAt: timestampOf(startedAt),
  seenAt: timestampOf(seenAt),
  living: isLiving,
  working: { ...working },
  logLevel: logLevel ?? "",
  ...(logLevel !== null && { logLevelUntil: timestampOf(logLevelUntil) }),
});
