import type { Duration } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@tanstack/react-query";
import { RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { clientOf } from "../../api/services.ts";
import { useMe } from "../../shell/me.tsx";

/** How long a step of a plan usually takes, in milliseconds. */
export interface Usual {
  readonly p50: number;
  readonly p95: number;
  /** From how many steps that is known. */
  readonly samples: number;
}

const NOTHING_KNOWN: ReadonlyMap<string, Usual> = new Map();

/** Of the steps of a run, by their names. No event makes them old: one run more changes little. */
export function useUsualDurations(runId: string): ReadonlyMap<string, Usual> {
  const { may } = useMe();
  const { data } = useQuery({
    queryKey: ["usual-durations", runId],
    queryFn: async ({ signal }) => {
      const { steps } = await clientOf(RunService).listUsualDurations({ runId }, { signal });
      return new Map(steps.map(({ step, p50, p95, samples }) => [step, { p50: msOf(p50), p95: msOf(p95), samples }]));
    },
    staleTime: Number.POSITIVE_INFINITY,
    enabled: may.has("millwright.v1.RunService/ListUsualDurations"),
  });
  return data ?? NOTHING_KNOWN;
}

const msOf = (duration: Duration | undefined): number =>
  duration === undefined ? 0 : Number(duration.seconds) * 1_000 + duration.nanos / 1_000_000;
