import { setTimeout as pause } from "node:timers/promises";
import { SystemService } from "../../../../contract/millwright/v1/system_pb.js";
import type { Session } from "../../client/session.ts";
import { parseDuration } from "../../terminal/times.ts";
import { printReplicas } from "./list.ts";

export interface DrainOptions {
  readonly force?: true;
  readonly wait?: true;
}

export interface LogLevelOptions {
  readonly replica?: readonly string[];
  readonly for?: string;
}

const LOOK_EVERY_MS = 500;

export async function drainReplicas(
  session: Session,
  names: readonly string[],
  options: DrainOptions,
): Promise<undefined> {
  const { signal } = session;
  const client = await session.client(SystemService);
  const { force = false, wait } = options;
  let { replicas } = await client.drainReplicas({ replicas: [...names], force }, { signal });
  const ids = new Set(replicas.map(({ id }) => id));
  while (wait && replicas.some(({ living, working }) => living && Object.keys(working).length > 0)) {
    await pause(LOOK_EVERY_MS, undefined, { signal });
    replicas = (await client.listReplicas({}, { signal })).replicas.filter(({ id }) => ids.has(id));
  }
  await printReplicas(session, replicas);
  return undefined;
}

export async function resumeReplicas(session: Session, names: readonly string[]): Promise<undefined> {
  const client = await session.client(SystemService);
  const { replicas } = await client.resumeReplicas({ replicas: [...names] }, { signal: session.signal });
  await printReplicas(session, replicas);
  return undefined;
}

/** `reset` is the level of the configuration. */
export async function setLogLevel(session: Session, level: string, options: LogLevelOptions): Promise<undefined> {
  const client = await session.client(SystemService);
  const { replicas } = await client.setLogLevel(
    {
      level: level === "reset" ? "" : level,
      replicas: [...(options.replica ?? [])],
      forSeconds: options.for === undefined ? 0 : Math.ceil(parseDuration(options.for, "--for") / 1_000),
    },
    { signal: session.signal },
  );
  await printReplicas(session, replicas);
  return undefined;
}
