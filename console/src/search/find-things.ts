import { MachineService } from "../../../contract/millwright/v1/machine_pb.js";
import { RunService } from "../../../contract/millwright/v1/run_pb.js";
import { clientOf } from "../api/services.ts";

export interface Found {
  readonly kind: string;
  readonly id: string;
  /** What tells it from others, in a few words. */
  readonly about: string;
  readonly to: string;
}

const MOST_OF_A_KIND = 6;
/** In the grammar of filters, whatever somebody types is text. */
const quoted = (text: string): string => `"${text.replace(/[\\"]/g, "\\$&")}"`;

/** Things by id, serial, address and MAC address. */
export async function findThings(text: string, may: ReadonlySet<string>, signal: AbortSignal): Promise<Found[]> {
  const wanted = quoted(text);
  const finders = [
    { method: "millwright.v1.MachineService/ListMachines", find: () => findMachines(wanted, signal) },
    { method: "millwright.v1.RunService/ListRuns", find: () => findRuns(wanted, signal) },
  ];
  const found = await Promise.allSettled(finders.filter(({ method }) => may.has(method)).map(({ find }) => find()));
  return found.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
}

async function findMachines(wanted: string, signal: AbortSignal): Promise<Found[]> {
  const places = ["machine_id", "serial", "mac", "bmc_endpoint", "ssh_endpoint", "rack"];
  const filter = places.map((field) => `${field}~${wanted}`).join(" OR ");
  const { machines } = await clientOf(MachineService).listMachines({ filter, pageSize: MOST_OF_A_KIND }, { signal });
  return machines.map(({ machineId: id, spec }) => ({
    ...{ kind: "machine", id, to: `/machines/${encodeURIComponent(id)}` },
    about: [spec?.rack, spec?.slot && `slot ${spec.slot}`, spec?.serial].filter(Boolean).join(" · "),
  }));
}

async function findRuns(wanted: string, signal: AbortSignal): Promise<Found[]> {
  const filter = `run_id~${wanted} OR target_id~${wanted} OR plan_id~${wanted}`;
  const { runs } = await clientOf(RunService).listRuns({ filter, pageSize: MOST_OF_A_KIND }, { signal });
  return runs.map(({ run, target }) => ({
    ...{ kind: "run", id: run?.runId ?? "", to: `/runs/${encodeURIComponent(run?.runId ?? "")}` },
    about: [run?.type || run?.planId, target && `${target.kind} ${target.id}`].filter(Boolean).join(" · "),
  }));
}
