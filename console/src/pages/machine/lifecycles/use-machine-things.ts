import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@tanstack/react-query";
import type { Machine } from "../../../../../contract/baremetal/v1/baremetal_pb.js";
import { FleetNodeService } from "../../../../../contract/millwright/v1/fleet_node_pb.js";
import { NodeService } from "../../../../../contract/millwright/v1/node_pb.js";
import { RunService } from "../../../../../contract/millwright/v1/run_pb.js";
import { topicKey } from "../../../api/query-keys.ts";
import { clientOf } from "../../../api/services.ts";
import { useMe } from "../../../shell/me.tsx";
import { standingOf as standingOfMachine } from "../../machines/machine-state.ts";
import { standingOf as standingOfRun } from "../../runs/run-state.ts";

/** Where a thing stands, as a chip needs it. */
export interface ThingStanding {
  readonly kind: string;
  readonly id: string;
  readonly state: string;
  readonly since: Timestamp | undefined;
  readonly isWaiting?: boolean;
  readonly isFailing?: boolean;
  readonly needsPerson?: boolean;
}

/** All that is the same piece of hardware, or works on it now: the machine, its install, its fleet node and its run. */
export function useMachineThings(machine: Machine): readonly ThingStanding[] {
  const { may } = useMe();
  const { machineId, status } = machine;
  const runId = status?.activeRunId ?? "";
  const install = useQuery({
    queryKey: topicKey("install", "of-machine", machineId),
    queryFn: async ({ signal }) =>
      (await clientOf(NodeService).listNodes({ filter: `id="${machineId}"` }, { signal })).nodes[0] ?? null,
    enabled: may.has("millwright.v1.NodeService/ListNodes"),
  });
  const fleetNode = useQuery({
    queryKey: ["fleet_node", "list", undefined, "of-machine", machineId],
    queryFn: async ({ signal }) =>
      (await clientOf(FleetNodeService).listFleetNodes({ filter: `machine_id="${machineId}"` }, { signal })).nodes[0] ??
      null,
    enabled: may.has("millwright.v1.FleetNodeService/ListFleetNodes"),
  });
  const run = useQuery({
    queryKey: topicKey("run", "one", runId),
    queryFn: async ({ signal }) => (await clientOf(RunService).getRun({ runId }, { signal })).run ?? null,
    enabled: runId !== "" && may.has("millwright.v1.RunService/GetRun"),
  });
  const { data: node } = install;
  const { data: fleet } = fleetNode;
  const active = runId === "" ? undefined : run.data?.run;
  return [
    standingOfMachine(machine),
    ...(active ? [standingOfRun(active)] : []),
    ...(node ? [{ kind: "install", id: node.id, state: node.state, since: node.stateChangedAt }] : []),
    ...(fleet ? [{ kind: "fleet_node", id: fleet.id, state: fleet.state, since: fleet.stateSince }] : []),
  ];
}
