import type { PreviewRunResponse } from "../../../../../contract/millwright/v1/run_pb.js";

/** What a run would do to one machine; or why there is nothing to say of it. */
export interface MachinePreview {
  readonly machineId: string;
  readonly preview?: PreviewRunResponse;
  /** The server's refusal. */
  readonly refusal?: string;
}

/** All of them together: what people want to know before they start anything. */
export interface ManySummary {
  /** Machines that would reboot. */
  readonly reboots: number;
  /** Clusters that would lose a node which was not drained, with how many. */
  readonly disturbed: ReadonlyMap<string, number>;
  /** Machines that StartRun would refuse, or on which the run would wait or fail, with why. */
  readonly hindered: readonly { readonly machineId: string; readonly why: readonly string[] }[];
  readonly warned: readonly { readonly machineId: string; readonly why: readonly string[] }[];
}

export function summaryOf(previews: readonly MachinePreview[]): ManySummary {
  const disturbed = new Map<string, number>();
  for (const { preview } of previews) {
    const cluster = preview?.disturbsCluster ?? "";
    if (cluster !== "") disturbed.set(cluster, (disturbed.get(cluster) ?? 0) + 1);
  }
  const withWhy = (whyOf: (each: MachinePreview) => readonly string[]) =>
    previews.flatMap((each) => {
      const why = whyOf(each);
      return why.length === 0 ? [] : [{ machineId: each.machineId, why }];
    });
  return {
    reboots: previews.filter(({ preview }) => (preview?.reboots ?? 0) > 0).length,
    disturbed,
    hindered: withWhy(({ preview, refusal }) => [
      ...(refusal === undefined ? [] : [refusal]),
      ...(preview?.missingCapabilities ?? []).map((each) => `its provider cannot do: ${each}`),
      ...(preview?.conflicts ?? []),
    ]),
    warned: withWhy(({ preview }) => preview?.warnings ?? []),
  };
}

/** Some at a time, so that a hundred machines leave connections for everything else on the page. */
export async function inTurns<T, R>(items: readonly T[], atATime: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const take = async () => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as T);
  };
  await Promise.all(Array.from({ length: atATime }, take));
  return results;
}
